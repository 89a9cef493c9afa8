// What things are, in plain words and the paper's symbols: shown on hover and on focus.
export const HELP = {
  sample:
    "One of the samples that the run is trained on, from its tokens to its loss. The weights and the prediction are those of the model at the step shown.",
  attention:
    "The learned attention A beside the true Q. There is one strip for each last token, with the weight of each of the T positions. Rings: the true weights. Dots and stems: the weights learned there. Grey: all other positions. The light band runs from the smallest to the largest weight; the dark one shows their typical size.",
  matrices:
    "The learned value matrix V beside the true transition matrix P. Column m is the distribution of the next token when the attended token is m. Dark is 0; bright is the largest entry of P.",
  plane:
    "How far V (α_V) and A (α_A) have come from knowing nothing (0) to the true P and Q (1). Arrows and the thin line show training with an infinite batch, the population process.",
  dist_A: "‖A − Q‖_μ: the distance of the attention from the true Q. Thin line: training with an infinite batch.",
  dist_V: "‖V − P‖_μ: the distance of V from the true P. Thin line: training with an infinite batch.",
  delta_A:
    "‖Δ_A‖_μ: the part of A that is neither signal nor uniform. Mini-batch noise piles up here unless the ℓ1 step removes it.",
  delta_V: "‖Δ_V‖_μ: the part of V that is neither signal nor the start. Mini-batch noise piles up here.",
  loss: "The expected loss ½E‖e_o − VXa‖²; for your own text, its mean over windows of the text. Thin line: training with an infinite batch.",
  dist_A_star:
    "‖A* − Q‖_μ: the distance after A has been thresholded and normalised, as in the paper's figure. It falls once the true positions stand out from the noise, long before A itself is close.",
  lags: "The lags that get the most attention, for each current symbol. Lag 1 is the current symbol, which chooses where to look; the model looks at lag 2 and beyond.",
  heads:
    "One column for each head, one strip for each last token. Bars: the weight that the head gives to each position. Rings: the true weights, in the colour of the pattern (the table P) that the position belongs to. A head that has learned one pattern has bars of one colour.",
  singular:
    "Together, the two heads compute a matrix of rank two. Solid lines: its two singular values; dashed: those of the task. The larger a singular value, the sooner it is learned. Dotted: how close the less clear of the two heads is to a true head, from 0 to 1 (the upper dashed line).",
  N: "The number of distinct tokens.",
  T: "The number of positions, among which attention must find the few that matter.",
  sparsity: "How many positions each last token attends to (the paper's Q).",
  ensemble:
    "How P is drawn. “Strong” meets the paper's assumption (c), K_P ≥ ‖μ‖². The others are ordinary random matrices: Dirichlet columns, normalised uniform columns, softmax of Gaussians.",
  K_P: "How sharp P is: K_P = ‖P − μ1ᵀ‖²_μ, the contrast that attention can learn from. 0 leaves P as it was drawn; for any other value, P is moved towards μ1ᵀ or towards the identity until K_P has that value.",
  taskSeed: "Another seed draws another task. With the same seed, `scb train --task-seed` draws the same task.",
  recipe:
    "The paper's: Algorithm 1 with the settings of the paper's experiment. Tuned: the batch sizes, λ and when each stage ends follow from theory and measured noise. SGD: no ℓ1 step. Softmax: plain SGD on a transformer whose attention is a softmax.",
  eta: "The step sizes of the three stages: η_V = η/K_Q and η_A = η/K_P.",
  steps:
    "The lengths of the three stages. Stage 1 grows the signal from zero, Stage 2 adds the ℓ1 step, and Stage 3 trains V alone on the normalised attention. The paper's experiment has no Stage 3.",
  batchSize: "B, the number of fresh samples per step. The noise falls as 1/√B.",
  lam: "λ, the amount that the ℓ1 (proximal) step takes off every entry of A in Stage 2. Entries smaller than λ become 0.",
  projector:
    "How the gradient of V is projected to keep Vμ = μ. The paper's Euclidean projector, I − μμᵀ/‖μ‖², lets in noise that does not shrink as T grows; the μ-projector keeps it out. By default the paper's recipe and SGD use the first; “tuned” and transfer use the second.",
  resolveSign:
    "A run and its mirror image compute nearly the same function, and noise decides between them. With this on, a run whose attention is skewed the wrong way is flipped after the stage. With this off, the run is the paper's algorithm as printed.",
  freeze: "A frozen layer stays where it started.",
  runSeed: "The seed of the samples. `scb train --seed` draws the same samples.",
  accuracy: "The target for the noise in A and V, from which “tuned” works out its batch sizes.",
  transfer:
    "Keep the learned V, draw a new Q and start again from uniform attention: one step on A, then Stages 2 and 3, then one more step on A. The long first stage is not needed.",
  speed: "Steps per second.",
  data: "Each symbol becomes a token, and each window of T + 2 symbols a sample: T symbols of context, the current symbol, and the next one, which is to be predicted.",
};
