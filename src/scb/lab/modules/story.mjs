// What is said: the list of scenes, the text of the one that is shown, and the announcements of a run.
import { element } from "./fields.mjs";
import { latest } from "./player.mjs";
import { runName, swatch } from "./runs.mjs";
import { SCENES } from "./scenes.mjs";
import { notice } from "./tips.mjs";

const $ = (id) => document.getElementById(id);

export const sceneAt = (state) => SCENES.findIndex((scene) => scene.id === state.scene);

/** The list of scenes; `goTo` opens one. */
export function listScenes(goTo) {
  const buttons = SCENES.map((scene, i) => element("button", { onclick: () => goTo(scene) }, `${i + 1} ${scene.title}`));
  $("scenes").replaceChildren(...buttons.map((button) => element("li", {}, button)));
}

/** Tell the scene of a state, if it has one. */
export function tell(state, goTo) {
  const at = sceneAt(state);
  const buttons = [...$("scenes").querySelectorAll("button")];
  buttons.forEach((button, i) => (i === at ? button.setAttribute("aria-current", "step") : button.removeAttribute("aria-current")));
  for (const id of ["story", "text"]) $(id).hidden = at < 0;
  if (at < 0) return;
  const scene = SCENES[at];
  const list = $("scenes");
  list.scrollLeft = Math.max(0, buttons[at].offsetLeft - list.offsetLeft - 60); // the list may be wider than the page
  $("scene-title").textContent = scene.title;
  $("lead").textContent = scene.lead;
  const step = (to, id, words) => (SCENES[to] ? [element("button", { id, onclick: () => goTo(SCENES[to]) }, words)] : []);
  const back = step(at - 1, "last-scene", "← Back");
  const onward = step(at + 1, "next-scene", `Next: ${SCENES[at + 1]?.title} →`);
  $("text").replaceChildren(
    ...scene.text.map((words) => element("p", {}, words)),
    element("div", { class: "row" }, ...back, ...onward),
  );
}

/** Which line is which run, where there are several. */
export function writeLegend({ state }) {
  const entries = state.runs.map((_, i) => element("span", {}, swatch(i), runName(state, i)));
  $("legend").replaceChildren(...(entries.length > 1 ? entries : []));
}

/** Tell of the mirror image, once it is clear, and of a run that diverged. `flip` goes over to the other one. */
export function announce({ state, runs }, flip) {
  const run = runs[state.view];
  if (!run) return;
  if (run.diverged) {
    notice(`The run diverged at step ${run.diverged} and needs smaller step sizes or larger batches.`);
    return;
  }
  const mirrored = latest(run, "alpha_V") < -0.04 && latest(run, "alpha_A") < -0.04;
  const said = $("notice").dataset.kind === "mirror";
  if (mirrored && !said) {
    const button = element("button", { id: "flip", onclick: flip }, "Flip it");
    notice(
      "This run is heading for the mirror image: α_V and α_A are both negative. The mirror image computes almost the same function as the truth, and noise chose between them.",
      button,
    );
  }
  if (!mirrored && said) notice(null);
}
