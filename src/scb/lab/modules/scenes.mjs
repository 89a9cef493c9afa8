// Scenes, in the order of a lecture. Each is a link, a sentence to begin with (lead), what to look for (text), the pictures that it
// needs (the others are folded away) and the settings to try. What a text claims of its run is checked in tests/lab/test_lab_browser.py.
import { KALEVALA } from "./kalevala.mjs";

export const SCENES = [
  {
    id: "task",
    title: "One sample",
    lead: "The last token says where to look; the token found there sets the odds of the next.",
    hash: "task.T=12&run=recipe:tuned&speed=60&play=0",
    panels: ["sample", "attention", "matrices"],
    fields: ["task.seed"],
    text: [
      "Follow one sample through the model, a step at a time. A sample is twelve random tokens followed by one last token. The last token chooses a position, and the token found there sets the odds of the next one through the table P. The model is told neither the positions nor P.",
      "The model is one layer of linear attention: A says where to look, V what to make of it. Neither can learn alone: while V knows nothing, no position looks better than any other; while A looks everywhere, V sees only averages. Run it and watch the stems grow towards the rings and V become P.",
    ],
  },
  {
    id: "plateau",
    title: "The long wait",
    lead: "For hundreds of steps nothing seems to happen. Then everything happens at once.",
    hash: "run=steps:400/1400/0;lam:0.0001;seed:6&speed=150",
    panels: ["plane", "attention", "loss:wide"],
    fields: ["run.batchSize"],
    text: [
      "This is the paper's own size: T = 5,000 positions and 64 samples per step. At first the loss stays flat. The signal plane shows why. Its axes say how far V has come towards P (α_V) and A towards Q (α_A): 0 at the start, 1 at the truth. Training starts at (0, 0), which is nearly a saddle: the push there is only of order 1/T, and the signals have to double many times before they become visible.",
      "Then both take off together, along the diagonal. The thin line is training with an infinite batch, which leaves the plateau through that weak push alone. The real run (blue) is kicked off it by noise.",
    ],
  },
  {
    id: "mirror",
    title: "The mirror image",
    lead: "This run learns the task upside down. The loss can hardly tell.",
    hash: "task.T=2000&run=resolveSign:0;steps:400/1000/0;lam:0.0001;seed:3&speed=150",
    panels: ["plane", "attention", "loss:wide"],
    fields: ["run.resolveSign", "run.seed"],
    text: [
      "This is the paper's algorithm exactly as printed, at T = 2,000. Both signals turn negative, and the run ends at the mirror image of the true answer: the stems hang down instead of reaching up. The predictions of the mirror image differ by about 1/√T, and its loss by about 1/T, so the loss can hardly tell. Noise decides which of the two a run finds: the push that should decide is far weaker than the noise of 64 samples.",
      "But true attention is sparse and never negative, so a few of its entries are large and positive; in the mirror image they are large and negative. You can tell which one you have without knowing the answer. Press “Flip it”, or tick “resolve the sign” and the run will do it by itself.",
    ],
  },
  {
    id: "noise",
    title: "Noise piles up",
    lead: "Plain SGD collects noise at every position. A small ℓ1 step wipes it out.",
    hash: "task.T=2000&run=recipe:sgd;steps:400/1200/0;seed:4&run=steps:400/1200/0;lam:0.0001;seed:4&speed=150",
    panels: ["attention", "delta_A"],
    fields: ["run.lam"],
    text: [
      "The two runs use the same samples. Each step adds a little noise to each of the 2,000 positions. SGD (blue) keeps all of it: the noise piles up into the grey band across every position, and ‖Δ_A‖ climbs to more than twice that of the orange run.",
      "The orange run is the paper's method. Its ℓ1 step shrinks every entry by λ and sets those smaller than λ to zero. That wipes out the band and takes next to nothing from the few entries that are large. Choose a run by its colour to see its attention.",
    ],
  },
  {
    id: "lambda",
    title: "Choosing λ",
    lead: "λ has a window: above the noise, below the signal.",
    hash: "task.T=2000&run=steps:400/1200/0;lam:0.000001;seed:4&run=steps:400/1200/0;lam:0.0001;seed:4&run=steps:400/1200/0;lam:0.003;seed:4&view=1&speed=150",
    panels: ["attention", "dist_A"],
    fields: ["run.lam"],
    text: [
      "These three runs differ only in λ. Blue (λ = 10⁻⁶) is too weak to matter: the noise grows as in SGD. Orange (λ = 10⁻⁴) sits above the noise and below the signal: the attention closes in on the truth. With the green setting (λ = 3·10⁻³), each step takes away more than a true position gains: the attention falls back to uniform within a few dozen steps of Stage 2, and nothing more is learned.",
      "Drag the slider for λ and see where the window ends. It can be found without knowing the answer: most positions carry nothing but noise, so the noise can be measured. The recipe “tuned” does this.",
    ],
  },
  {
    id: "projector",
    title: "The leak",
    lead: "Same task, same samples. One projection lets noise in, and the run goes wrong.",
    hash: "task.T=2000&run=resolveSign:0;steps:400/1000/0;lam:0.0001;seed:3&run=projector:mu;resolveSign:0;steps:400/1000/0;lam:0.0001;seed:3&speed=150",
    panels: ["plane:half", "delta_V:half"],
    fields: ["run.projector"],
    text: [
      "After each step V has to be put back where Vμ = μ holds. Blue uses the paper's projector, I − μμᵀ/‖μ‖². Near the start it lets through a part of each sample's gradient that carries no information, and that noise does not shrink as T grows. Orange uses the μ-projector, H ↦ H − (Hμ)1ᵀ, which removes it.",
      "Look at ‖Δ_V‖ in Stage 1: it is several times smaller in the orange run. With so little noise, the weak drift can do its work. Orange goes to the true answer; blue, on the same samples, goes to the mirror image.",
    ],
  },
  {
    id: "transfer",
    title: "Transfer",
    lead: "Keep what V has learned, and the next task takes one step.",
    hash: "task.T=2000&run=recipe:tuned;seed:1&event=700:transfer:7&speed=60",
    panels: ["attention", "matrices", "dist_A:full"],
    fields: [],
    text: [
      "Train once. At step 700, keep V, draw new positions and begin again with uniform attention. Now V knows something, so there is no plateau: a single step on A is enough for the true positions to stand out from the noise. Watch the rings jump and the stems follow.",
      "This is the paper's second theorem: where the two tasks share P, the long first stage is not needed, and the number of samples does not grow with T.",
    ],
  },
  {
    id: "heads",
    title: "Two heads",
    lead: "Two heads first chase the same pattern. Then they divide the work.",
    hash: "task.heads=2&task.T=40&task.sparsity=4&task.seed=9&run=eta:0.01/0.01/0;steps:1400/1400/0;batchSize:256;lam:0.0005;seed:1&speed=150",
    panels: ["heads", "singular"],
    fields: ["run.lam", "turn"],
    text: [
      "This task has two tables P. Each ringed position belongs to one of them: blue or orange. Training factors a matrix of rank two and finds its singular values one after the other: both heads first learn a mixture of the two patterns (σ₁), and only later what tells them apart (σ₂). At step 1,400 the function is learned, yet each head still attends to blue and orange alike. Gradient descent learns the function, not the heads.",
      "From then on a small ℓ1 step prefers attention with few entries. It turns the heads until each has one colour. Drag λ: if it is tiny, the heads stay mixed; if it is large, the weights themselves shrink. Or pause before step 1,400 and press “Turn the heads”, which reads the answer off at once: pairs of weights lie on two lines through 0, and the lines become the heads.",
    ],
  },
  {
    id: "softmax",
    title: "Softmax",
    lead: "Real transformers use softmax. It finds the same positions, and it never goes negative.",
    hash: "task.T=200&run=batchSize:256;steps:400/1600/0;lam:0.0001&run=recipe:softmax;batchSize:256;steps:400/1600/0;lam:0.0001&view=1&speed=150",
    panels: ["attention", "dist_A", "loss:full"],
    fields: ["task.T"],
    text: [
      "Two models are trained on the same task, with 256 samples per step. Linear attention (blue) learns the weights themselves, which may have any sign. Softmax attention (orange) learns scores and turns them into weights that are positive and sum to 1. Both wait, both take off, and both find the true positions. Softmax has no mirror image: its weights cannot turn negative.",
      "Softmax does not come as close to Q: a little weight stays on wrong positions. V makes up for it, and the losses end up almost equal, so here the distance to Q alone would mislead.",
    ],
  },
  {
    id: "lost",
    title: "Too much noise",
    lead: "With 20,000 positions and 8 samples per step, nothing is learned.",
    hash: "task.T=20000&task.ensemble=uniform&run=batchSize:8;steps:200/300/0&speed=60",
    panels: ["plane", "attention"],
    fields: ["run.batchSize", "task.T", "run.recipe"],
    text: [
      "This P is an ordinary random matrix with hardly any contrast (K_P = 0.07 instead of 0.5). The signals wander about zero, and the error in the attention drowns them: there is noise at every position. Neither more steps nor the ℓ1 step can help, because nothing stands out for them to keep.",
      "Three things help: larger batches (the noise falls as 1/√B), a sharper P and a shorter T. Try B = 512, or the recipe “tuned”, which takes as many samples as the noise requires.",
    ],
  },
  {
    id: "text",
    title: "Your own text",
    lead: "Paste a text and see which earlier symbols predict the next one.",
    hash: `task.T=18&run=projector:mu;eta:0.02/0.02/0.005;steps:400/1600/0;batchSize:256;lam:0.001&speed=150&unit=lines&data=${KALEVALA}`,
    panels: ["attention", "matrices", "lags:full"],
    fields: ["own"],
    text: [
      "This is the Kalevala, the Finnish epic, as 20,000 syllables of two kinds: “first” where a word begins, “inner” elsewhere. The model sees neither letters nor line breaks. It looks at the 18 syllables before the current one and learns to predict the next. After “inner”, lags 8 and 16 light up: the Kalevala has eight syllables per line, and every line begins with a new word.",
      "Now try your own: paste a text, or a column with one symbol per line. Nothing leaves your machine.",
    ],
  },
];

/** The part of the address after '#' that shows a scene and, unless it says otherwise, lets it run. */
export function sceneHash(scene) {
  const play = scene.hash.includes("play=") ? "" : "play=1";
  return [scene.hash, `scene=${scene.id}`, play].filter(Boolean).join("&");
}

/** What an address means: nothing at all begins the lecture, and a scene's name without a task of its own stands for its whole link. */
export function meantBy(hash) {
  const parts = hash.replace("#", "").split("&").filter(Boolean);
  const own = parts.filter((part) => !/^(scene|play|embed|theme|speed)=/.test(part));
  const name = parts.find((part) => part.startsWith("scene="))?.slice(6);
  if (own.length || (parts.length && name === undefined)) return hash;
  const scene = SCENES.find(({ id }) => id === (name ?? SCENES[0].id));
  return scene ? [sceneHash(scene), ...parts].join("&") : hash;
}
