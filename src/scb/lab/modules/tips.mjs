// Words beside the pointer, beside what has the keyboard's focus, or in a box over the page.
import { element } from "./fields.mjs";
import { HELP } from "./help.mjs";

const tip = () => document.getElementById("tip");

export function showTip(words, x, y) {
  const node = tip();
  node.textContent = words;
  node.hidden = false;
  const { width, height } = node.getBoundingClientRect();
  node.style.left = `${Math.max(8, Math.min(x + 14, innerWidth - width - 8))}px`;
  node.style.top = `${y + 18 + height > innerHeight ? Math.max(8, y - height - 12) : y + 18}px`;
}

export function hideTip() {
  tip().hidden = true;
}

/** Say something to those who listen to the page instead of seeing it. */
export function say(words) {
  document.getElementById("said").textContent = words;
}

/** Let everything with a `data-help` say what it is, on hover and on focus. */
export function listenForHelp() {
  const help = (event) => {
    const node = event.target.closest?.("[data-help]");
    const words = node && HELP[node.dataset.help];
    if (!words) return;
    const box = node.getBoundingClientRect();
    showTip(words, box.left, box.bottom - 12);
  };
  document.addEventListener("pointerover", help);
  document.addEventListener("focusin", help);
  document.addEventListener("pointerout", (event) => event.target.closest?.("[data-help]") && hideTip());
  document.addEventListener("focusout", hideTip);
  document.addEventListener("click", (event) => event.target.closest?.("button[data-help]") && help(event)); // by touch
  document.addEventListener("keydown", (event) => event.key === "Escape" && hideTip());
}

/** Say something in a box that lies over the page, with a button to act on it if there is one; null takes it away. */
export function notice(words, button = null) {
  const box = document.getElementById("notice");
  const close = element("button", { "aria-label": "Close", onclick: () => (box.hidden = true) }, "×");
  box.hidden = !words;
  box.replaceChildren(element("span", {}, words ?? ""), ...(button ? [button] : []), close);
  box.dataset.kind = button ? "mirror" : "";
}
