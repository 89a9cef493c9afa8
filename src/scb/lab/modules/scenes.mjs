// Scenes, in the order of a lecture: each is a link with a paragraph beside the live picture.
// What a paragraph claims of its run is checked in tests/lab/test_lab_browser.py.
import { KALEVALA } from "./kalevala.mjs";

export const SCENES = [
  {
    id: "task",
    title: "What the task is",
    hash: "task.T=200&run=recipe:tuned&speed=60",
    picture: true,
    text: [
      "Each sample is 200 random tokens and one last token. The last token says where to look: after token 1, at one of the two ringed positions of the first strip below. The token found there sets the odds of the next one, through the table P. The model is told neither the positions nor P.",
      "The model is one layer of linear attention: A says where to look, V what to make of it. It begins with uniform attention and no idea of P. Watch the stems grow to the rings, and V become P. Neither can learn alone: while V knows nothing, no position looks better than another; while A looks everywhere, V sees only averages.",
    ],
  },
  {
    id: "plateau",
    title: "The plateau and the take-off",
    hash: "run=steps:400/1400/0;lam:0.0001;seed:6",
    text: [
      "The paper's own size: T = 5,000 positions, 64 samples per step. For hundreds of steps nothing seems to happen: loss and distances stay flat. The signal plane shows why. The start (0, 0) is nearly a saddle: the flow there is as small as 1/T, and the signals have to double many times before anyone can see them.",
      "Then both take off together along the diagonal. This is the paper's sample-intensive first stage and its quick second one. The thin line is the population process, an infinite batch: it leaves the plateau by the drift 1/T alone, while the run is pushed off it by noise.",
    ],
  },
  {
    id: "mirror",
    title: "The mirror image",
    hash: "task.T=2000&run=resolveSign:0;steps:400/1000/0;lam:0.0001;seed:3",
    text: [
      "The paper's algorithm exactly as printed, with another seed. This run grows the wrong way: both signals become negative, and it ends at the mirror image of the truth, (2μ1ᵀ − V, 2/T − A), with stems that hang down. The mirror computes the same function up to O(1/T), so the loss cannot tell; the drift that should decide is 1/(T·K_Q), far below the noise of 64 samples. With the paper's settings it happens to a quarter of the seeds or more.",
      "But Q is sparse and nonnegative: a sparse attention is skewed to the right, its mirror to the left, and one can see which it is without knowing the truth. Press “Flip it”; or tick “resolve the sign”, and the run does so by itself after Stage 1.",
    ],
  },
  {
    id: "noise",
    title: "Why SGD's error grows, and what ℓ1 does",
    hash: "task.T=2000&run=recipe:sgd;steps:400/1200/0;seed:4&run=steps:400/1200/0;lam:0.0001;seed:4",
    text: [
      "Two runs on the same samples: A (blue) is SGD, B (dashed) the paper's proximal method, with λ = 10⁻⁴ in Stage 2. The signals are alike, but look at ‖Δ_A‖. Each step adds a little noise to each of the 2,000 positions of every column. SGD keeps all of it: the noise piles up into the grey band across every position, and ‖Δ_A‖ climbs to more than twice that of B.",
      "The ℓ1 step subtracts λ from every entry and sets to zero what is smaller: it wipes the band off at every step, and takes next to nothing from the few entries that are large. That is why the number of samples of Stage 2 need not grow with T.",
    ],
  },
  {
    id: "lambda",
    title: "λ too small, λ too large",
    hash: "task.T=2000&run=steps:400/1200/0;lam:0.000001;seed:4&run=steps:400/1200/0;lam:0.0001;seed:4&run=steps:400/1200/0;lam:0.003;seed:4&view=1",
    text: [
      "Three runs that differ in λ alone. Blue (λ = 10⁻⁶) does nothing: the noise grows as in SGD. Orange (λ = 10⁻⁴) sits above the noise and below the signal: the attention closes in on the truth. Green (λ = 3·10⁻³) takes more than a true position gains in a step: within a few dozen steps of Stage 2 the attention falls back to uniform, and nothing more is learned.",
      "So λ has a window: above η_A times the noise of one coordinate, below η_A times the gradient at a true position. The noise can be measured, for most coordinates of a column are nothing else; the recipe “tuned” does it.",
    ],
  },
  {
    id: "projector",
    title: "A projector that leaks",
    hash: "task.T=2000&run=resolveSign:0;steps:400/1000/0;lam:0.0001;seed:3&run=projector:mu;resolveSign:0;steps:400/1000/0;lam:0.0001;seed:3",
    text: [
      "The same task, the same samples, with the sign left to chance. A uses the paper's projector for the gradient of V, I − μμᵀ/‖μ‖². Near the start the gradient of a sample is r·1ᵀ, and this projector leaves r(1 − μ/‖μ‖²)ᵀ of it: noise that does not fall with T. B uses the projector that is orthogonal in the paper's own μ-inner product, H ↦ H − (Hμ)1ᵀ, which leaves nothing of it.",
      "Look at ‖Δ_V‖ in Stage 1: several times smaller in B. With so little noise the drift of 1/T can do its work: B goes to the truth, A, on the same samples, to the mirror.",
    ],
  },
  {
    id: "transfer",
    title: "Transfer in one step",
    hash: "task.T=2000&run=recipe:tuned;seed:1&event=700:transfer:7",
    text: [
      "Train once; then keep V, draw a new Q, and begin again with uniform attention. Now V knows something, so there is no plateau: one step on A is enough for the true positions to stand out of the noise. Watch the rings jump at step 700 and the stems follow.",
      "This is the paper's second theorem: where pretraining and task are related, the sample-intensive first stage is not needed, and the number of samples does not grow with T.",
    ],
  },
  {
    id: "lost",
    title: "Noise wins",
    hash: "task.T=20000&task.ensemble=uniform&run=batchSize:8;steps:200/300/0",
    text: [
      "T = 20,000 positions, 8 samples per step, and an ordinary random P with hardly any contrast (K_P = 0.07 instead of 0.5). The signals wander about zero, and the error in the attention drowns the signal: there is noise at every position. Neither more steps nor the ℓ1 step help, for nothing stands out that they could keep.",
      "What helps: larger batches (the noise falls with √B), a sharper P, a shorter T. Try B = 512, or the recipe “tuned”, which takes as many samples as the noise asks for.",
    ],
  },
  {
    id: "text",
    title: "Your own text",
    hash: `task.T=18&run=projector:mu;eta:0.02/0.02/0.005;steps:400/1600/0;batchSize:256;lam:0.001&unit=lines&data=${KALEVALA}`,
    text: [
      "The Kalevala, the Finnish epic, as 20,000 syllables of two kinds: “first” where a word begins, “inner” elsewhere. The model sees neither letters nor line breaks. The model looks at 18 syllables before the current one and learns to predict the next. After “inner”, lag 8 lights up, and lag 16: the Kalevala has eight syllables per line, and a line always begins with a word.",
      "Now yours: open “Your own text”, paste a text or a column of symbols, and see which lags light up. Everything stays in this page.",
    ],
  },
];

/** The part of the address after '#' that shows a scene and lets it run. */
export function sceneHash(scene) {
  return [scene.hash, `scene=${scene.id}`, "play=1"].filter(Boolean).join("&");
}
