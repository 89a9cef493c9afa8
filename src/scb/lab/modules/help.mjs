// What things are, in the paper's words and ours: shown on hover and on focus.
export const HELP = {
  sample: "One of the samples that the run is trained on, from the tokens to the loss. The weights and the prediction are those of the model as it stands, or as it stood at the step that the slider shows.",
  attention:
    "Attention A beside the truth Q. One strip for each last token k: its column a^(k) says how much each of the T positions counts. Rings: the true weights q^(k), a “sparse probability vector determined by the last token”. Dots and stems: what has been learned there. The rest is drawn as a density: light from least to largest, dark its typical size.",
  matrices:
    "The value matrix V beside the “global knowledge” P, the transition matrix: column m is the distribution of the next token when the attended token is m. Dark is 0, light the largest entry of P.",
  plane:
    "The two signals. α_V and α_A say how far V and A have come on the way from knowing nothing (0) to the truth (1). Arrows: the population process, that is, training with an infinite batch. The thin line is its path from the start.",
  dist_A: "‖A − Q‖_μ: how far the attention is from the truth. Thin: the population process.",
  dist_V: "‖V − P‖_μ: how far the transition is from the truth. Thin: the population process.",
  delta_A:
    "‖Δ_A‖_μ: what in A is neither signal nor uniform, “the distance to the population trajectory”. Noise of mini-batches adds up here unless the ℓ1 step removes it.",
  delta_V: "‖Δ_V‖_μ: the same for V.",
  loss: "The population loss ½E‖e_o − VXa‖². Own data: its mean over windows of the text. Thin: the population process.",
  dist_A_star:
    "‖A* − Q‖_μ: the distance after thresholding and normalising A, the “star” of the paper's figure. It falls once the true positions stand out of the noise, long before A itself is close.",
  lags: "The earlier symbols that count most, and after which current symbol. Lag 1 is the current symbol, which chooses; the model looks at lag 2 and beyond.",
  heads:
    "One column for each head, one strip for each last token. Bars: the weight that the head gives to each position. Rings: the true weights, in the colour of the pattern (the table P) that the position belongs to. A head that has one pattern has bars of one colour.",
  singular:
    "The function of the two heads is a matrix of rank two. Lines: its singular values. Dashed: those of the task. Each is learned in a time that goes like 1/σ. Dotted: how close the less clear of the two heads is to a true one, from 0 to 1 (at the upper dashed line).",
  N: "Number of tokens, the size of the vocabulary.",
  T: "Sequence length: positions among which attention must find the few that matter.",
  sparsity: "The paper's Q: how many positions each token attends to.",
  ensemble:
    "How P is drawn. “strong” meets the paper's assumption (c), K_P ≥ ‖μ‖²; the others are ordinary random matrices: Dirichlet columns, normalised uniform columns, softmax of Gaussians.",
  K_P: "How sharp P is: K_P = ‖P − μ1ᵀ‖²_μ, the contrast that attention can learn from. 0 leaves P as it was drawn; another value moves it there, towards μ1ᵀ or towards the identity.",
  taskSeed: "The task of this seed; `scb train --task-seed` has the same.",
  recipe:
    "paper: Algorithm 1 with the settings of the experiment. tuned: the same with batch sizes, λ and stage ends by theory and measured noise. sgd: the preconditioned gradients without the ℓ1 step. softmax: plain SGD on a transformer whose attention is a softmax.",
  eta: "Step sizes of the three stages: η_V = η/K_Q and η_A = η/K_P.",
  steps:
    "Length of the three stages. Stage 1 boosts the signal from zero, Stage 2 has the ℓ1 step, Stage 3 trains V alone on the normalised attention. The paper's experiment has no third.",
  batchSize: "B, fresh samples per step. The noise falls with √B.",
  lam: "λ: what the proximal step takes from every entry of A. “During the proximal step, all small entries are set to 0, and λ is subtracted from all large coordinates.”",
  projector:
    "How the gradient of V is kept on Vμ = μ. The Euclidean one is the paper's I − μμᵀ/‖μ‖², which lets noise of a size that does not fall with T leak in; that of the μ-product is orthogonal in the paper's own inner product, and does not. The paper's recipe and SGD have the first, “tuned” and transfer the second.",
  resolveSign:
    "(V, A) and its mirror image compute nearly the same function, and noise decides between them. If this is on, the run goes over to the mirror after a stage where A is skewed to the left. Off is the paper's algorithm as printed.",
  freeze: "A frozen layer stays where it began.",
  runSeed: "What is random in the samples. The same seed gives the samples that `scb train --seed` takes.",
  accuracy: "Target for the noise in A and V, from which the tuned recipe takes its batch sizes.",
  transfer:
    "Keep the learned V, draw a new Q, begin with uniform attention: one step on A from V = ½V̂ + ½μ1ᵀ, then Stages 2 and 3 of Algorithm 1, and one more step on A. The sample-intensive first stage is not needed.",
  speed: "Steps per second.",
  data: "Each symbol becomes a token, each window of T + 2 symbols a sample: T of context, the current symbol, and the next one to be predicted.",
};
