// A scene, or a few panels of it, in another page:
//   <iframe src="lab.html#scene=mirror&embed=plane,attention,run.seed&play=1"></iframe>
// `embed` names panels (view.mjs) and settings (controls.mjs). The run begins when it comes into sight. The page outside is told how high
// the lab is, and may tell it the theme:
//   addEventListener("message", ({ data }) => (iframe.style.height = `${data.scbLab.height}px`));
//   iframe.contentWindow.postMessage({ scbLab: { theme: "dark" } }, "*");

const dark = matchMedia("(prefers-color-scheme: dark)");
const framed = parent !== globalThis;

/** What an address asks to be embedded: { panels, fields }; null if the page stands alone. */
export function embedded({ embed }) {
  if (!embed) return null;
  const names = embed.split(",").filter(Boolean);
  const isField = (name) => name.includes(".") || name === "turn";
  return { panels: names.filter((name) => !isField(name)), fields: names.filter(isField) };
}

/** Light or dark: what the address says, or the page outside, or else what the reader prefers. */
export function setTheme(asked) {
  document.documentElement.dataset.theme = asked || outside() || (dark.matches ? "dark" : "light");
}

// The theme of the page outside, where it may be read: the site's own pages say it in this way.
function outside() {
  try {
    return framed ? parent.document.documentElement.dataset.theme : "";
  } catch {
    return ""; // another site
  }
}

/** Call `changed(theme)` when the reader's preference or the page outside changes. */
export function listenForTheme(changed) {
  dark.addEventListener("change", () => changed(""));
  addEventListener("message", ({ data }) => data?.scbLab?.theme && changed(data.scbLab.theme));
  if (outside())
    new MutationObserver(() => changed("")).observe(parent.document.documentElement, { attributeFilter: ["data-theme"] });
}

/** Tell the page outside how high the lab is, whenever that changes. */
export function reportHeight() {
  if (!framed) return;
  const tell = () => parent.postMessage({ scbLab: { height: Math.ceil(document.body.getBoundingClientRect().height) } }, "*");
  new ResizeObserver(tell).observe(document.body);
}

/** Call `begin` once, when the lab can be seen. */
export function whenSeen(begin) {
  const observer = new IntersectionObserver((entries) => {
    if (!entries.some((entry) => entry.isIntersecting)) return;
    observer.disconnect();
    begin();
  });
  observer.observe(document.getElementById("stage"));
}
