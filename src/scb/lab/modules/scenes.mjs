// Scenes, in the order of a lecture. Each is a link, a sentence to begin with (lead), what to look for (text), the pictures that it
// needs (the others are folded away) and the settings to try. What a text claims of its run is checked in tests/lab/test_lab_browser.py.
import { KALEVALA } from "./kalevala.mjs";

export const SCENES = [
  {
    id: "task",
    title: "One sample",
    lead: "The last token says where to look, and the token found there sets the odds of the next token.",
    hash: "task.T=12&run=recipe:tuned&speed=60&play=0",
    panels: ["sample", "attention", "matrices"],
    fields: ["task.seed"],
    text: [
      "Follow one sample through the model, one step at a time. A sample consists of twelve random tokens followed by one last token. The last token chooses a position, and the token at that position sets the odds of the next token through the table P. The model is told neither the positions nor P.",
      "The model is one layer of linear attention: A says where to look, and V says what to make of the token found there. Neither A nor V can learn alone. While V knows nothing, no position looks better than any other. While A looks everywhere, V sees only averages. Press “Run” and watch the stems grow towards the rings while V turns into P.",
    ],
  },
  {
    id: "plateau",
    title: "The long wait",
    lead: "For hundreds of steps, nothing seems to happen. Then everything happens at once.",
    hash: "run=steps:400/1400/0;lam:0.0001;seed:6&speed=150",
    panels: ["plane", "attention", "loss:wide"],
    fields: ["run.batchSize"],
    text: [
      "This run is the same size as the paper's experiment: T = 5,000 positions and 64 samples per step. At first, the loss stays flat, and the signal plane shows why. The axes show how far V has moved towards P (α_V) and how far A has moved towards Q (α_A). Both signals are 0 at the start and 1 at the truth. Training starts at (0, 0), which is nearly a saddle point. The push away from this point is only of order 1/T, and the signals have to double many times before they become visible.",
      "Then both signals take off together, along the diagonal. The thin line shows training with an infinite batch, which leaves the plateau through the weak push alone. The real run (blue) is kicked off the plateau by noise.",
    ],
  },
  {
    id: "mirror",
    title: "The mirror image",
    lead: "This run learns the task upside down. The loss can hardly tell the difference.",
    hash: "task.T=2000&run=resolveSign:0;steps:400/1000/0;lam:0.0001;seed:3&speed=150",
    panels: ["plane", "attention", "loss:wide"],
    fields: ["run.resolveSign", "run.seed"],
    text: [
      "This is the paper's algorithm exactly as printed, at T = 2,000. Both signals turn negative, and the run ends at the mirror image of the true answer: the stems hang down instead of reaching up. The mirror image and the true answer differ by only about 1/√T in their predictions and by about 1/T in their loss, so the loss can hardly tell them apart. Noise decides which of the two a run finds, because the push towards the true answer is far weaker than the noise of 64 samples.",
      "True attention, however, is sparse and never negative, so a few of its entries are large and positive. In the mirror image, these entries are large and negative. You can therefore recognise the mirror image without knowing the true answer. To correct the run, press “Flip it”. If you tick “resolve the sign”, the run corrects itself.",
    ],
  },
  {
    id: "noise",
    title: "Noise piles up",
    lead: "Plain SGD collects noise at every position. A small ℓ1 step wipes out the noise.",
    hash: "task.T=2000&run=recipe:sgd;steps:400/1200/0;seed:4&run=steps:400/1200/0;lam:0.0001;seed:4&speed=150",
    panels: ["attention", "delta_A"],
    fields: ["run.lam"],
    text: [
      "The two runs use the same samples. Each step adds a little noise to each of the 2,000 positions. SGD (blue) keeps all of this noise, which piles up into the grey band across all positions. In the blue run, ‖Δ_A‖ climbs to more than twice its value in the orange run.",
      "The orange run is the paper's method. The ℓ1 step shrinks every entry of A by λ and sets entries smaller than λ to zero. The ℓ1 step thus wipes out the grey band but takes next to nothing from the few large entries. To see the attention of a run, choose the run by its colour.",
    ],
  },
  {
    id: "lambda",
    title: "Choosing λ",
    lead: "λ must lie in a window above the noise and below the signal.",
    hash: "task.T=2000&run=steps:400/1200/0;lam:0.000001;seed:4&run=steps:400/1200/0;lam:0.0001;seed:4&run=steps:400/1200/0;lam:0.003;seed:4&view=1&speed=150",
    panels: ["attention", "dist_A"],
    fields: ["run.lam"],
    text: [
      "These three runs differ only in λ. In the blue run, λ = 10⁻⁶ is too small to matter, and the noise grows as it does in SGD. In the orange run, λ = 10⁻⁴ lies above the noise and below the signal, and the attention closes in on the truth. In the green run, λ = 3·10⁻³ is too large: each step takes away more than a true position gains. The attention then falls back to uniform within a few dozen steps of Stage 2, and nothing more is learned.",
      "Drag the slider for λ to see where the window ends. The window can be found without knowing the answer: most positions carry nothing but noise, so the noise can be measured. The recipe “tuned” chooses λ in this way.",
    ],
  },
  {
    id: "projector",
    title: "The leak",
    lead: "Two runs use the same samples. In one run, the projector lets noise in, and the run fails.",
    hash: "task.T=2000&run=resolveSign:0;steps:400/1000/0;lam:0.0001;seed:3&run=projector:mu;resolveSign:0;steps:400/1000/0;lam:0.0001;seed:3&speed=150",
    panels: ["plane:half", "delta_V:half"],
    fields: ["run.projector"],
    text: [
      "At each step, the gradient of V is projected so that Vμ = μ continues to hold. The blue run uses the paper's projector, I − μμᵀ/‖μ‖². Near the start, this projector lets through a part of each sample's gradient that carries no information. This part is noise that does not shrink as T grows. The orange run uses the μ-projector, H ↦ H − (Hμ)1ᵀ, which removes the noise.",
      "Look at ‖Δ_V‖ in Stage 1: it is several times smaller in the orange run. With so little noise, the weak drift can do its work. The orange run goes to the true answer, whereas the blue run goes to the mirror image on the same samples.",
    ],
  },
  {
    id: "transfer",
    title: "Transfer",
    lead: "If V keeps what it has learned, the next task needs only one step to reveal its positions.",
    hash: "task.T=2000&run=recipe:tuned;seed:1&event=700:transfer:7&speed=60",
    panels: ["attention", "matrices", "dist_A:full"],
    fields: [],
    text: [
      "The model is trained once. At step 700, V is kept, new positions are drawn, and training begins again with uniform attention. This time, V already knows something, so there is no plateau: a single step on A is enough for the true positions to stand out from the noise. Watch the rings jump and the stems follow.",
      "This is the paper's second theorem: if two tasks share P, the second task does not need the long first stage, and the number of samples that it needs depends on T only through log T.",
    ],
  },
  {
    id: "heads",
    title: "Two heads",
    lead: "Two heads first chase the same pattern and then divide the work.",
    hash: "task.heads=2&task.T=40&task.sparsity=4&task.seed=9&run=eta:0.01/0.01/0;steps:1400/1400/0;batchSize:256;lam:0.0005;seed:1&speed=150",
    panels: ["heads", "singular"],
    fields: ["run.lam", "turn"],
    text: [
      "This task has two tables P. Each ringed position belongs to one of the two tables and has the colour of that table, blue or orange. Training factors a matrix of rank two and finds its singular values one after the other. Both heads first learn a mixture of the two patterns (σ₁); only later do they learn what tells the patterns apart (σ₂). By step 1,400, the function has been learned, yet each head still attends to blue and orange positions alike. Gradient descent has learned the function but has not separated the heads.",
      "From step 1,400 onwards, a small ℓ1 step favours attention with few nonzero entries. The ℓ1 step turns the heads until each head has one colour. Drag λ to see its effect: if λ is tiny, the heads stay mixed; if λ is large, the weights themselves shrink. Alternatively, pause before step 1,400 and press “Turn the heads” to separate the heads at once. Pairs of weights lie on two lines through 0, and each line becomes a head.",
    ],
  },
  {
    id: "softmax",
    title: "Softmax",
    lead: "Real transformers use softmax attention, which finds the same positions without negative weights.",
    hash: "task.T=200&run=batchSize:256;steps:400/1600/0;lam:0.0001&run=recipe:softmax;batchSize:256;steps:400/1600/0;lam:0.0001&view=1&speed=150",
    panels: ["attention", "dist_A", "loss:full"],
    fields: ["task.T"],
    text: [
      "Two models are trained on the same task, with 256 samples per step. Linear attention (blue) learns the weights themselves, which may have any sign. Softmax attention (orange) learns scores and turns them into weights that are positive and sum to 1. Both models stay on a plateau at first, then take off and find the true positions. Softmax attention has no mirror image, because its weights cannot turn negative.",
      "Softmax attention does not come as close to Q as linear attention does: a little weight stays on wrong positions. The V of the softmax model makes up for this weight, and the two losses end up almost equal, so the distance to Q alone would be misleading here.",
    ],
  },
  {
    id: "lost",
    title: "Too much noise",
    lead: "With 20,000 positions, 8 samples per step and a weak P, nothing is learned.",
    hash: "task.T=20000&task.ensemble=uniform&run=batchSize:8;steps:200/300/0&speed=60",
    panels: ["plane", "attention"],
    fields: ["run.batchSize", "task.T", "run.recipe"],
    text: [
      "In this task, P is an ordinary random matrix, whose columns differ little: K_P, the strength of the signal in P, is only 0.07, whereas most other scenes have about 0.5. The signals wander around zero, and the error in the attention drowns them, because there is noise at every position. With these settings, the ℓ1 step does not help either, because no position stands out from the noise.",
      "Three things help: larger batches (the noise falls as 1/√B), a sharper P and a smaller T. Try B = 512 or the recipe “tuned”, which uses as many samples as the noise requires.",
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
      "This is the Kalevala, the Finnish epic, written as 20,000 syllables of two kinds: “first” at the beginning of a word and “inner” elsewhere. The model sees neither letters nor line breaks. The model looks at the 18 syllables before the current syllable and learns to predict the next syllable. After “inner”, lags 8 and 16 light up, because the Kalevala has eight syllables per line, and every line begins with a new word. (Lag 1 is the current syllable. While training, a weight may be negative or exceed 1; small ones may be noise. The command scb fit says how sure each lag is.)",
      "Now try your own data: paste a text or a column with one symbol per line. Nothing leaves your machine.",
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
