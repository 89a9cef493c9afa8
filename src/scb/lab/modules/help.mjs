// What things are, in plain words and the paper's symbols: shown on hover and on focus.
export const HELP = {
  sample:
    "This panel follows one of the run's training samples from its tokens to its loss. The weights and the prediction are those of the model at the step shown.",
  attention:
    "This panel compares the learned attention A with the true Q. There is one strip for each last token, with the weight of each of the T positions. Rings mark the true weights. Dots and stems show the learned weights at the true positions. Grey shows the weights at all other positions: the light band runs from the smallest to the largest weight, and the dark band shows the typical size of these weights.",
  matrices:
    "This panel compares the learned value matrix V with the true transition matrix P. Column m is the distribution of the next token when the attended token is m. Dark cells are 0; the brightest colour is the largest entry of P.",
  plane:
    "The axes show how far V (α_V) and A (α_A) have moved from knowing nothing (0) to the true P and Q (1). The arrows and the thin line show the population process, which is training with an infinite batch.",
  dist_A: "‖A − Q‖_μ is the distance of the attention from the true Q. The thin line shows training with an infinite batch.",
  dist_V: "‖V − P‖_μ is the distance of V from the true P. The thin line shows training with an infinite batch.",
  delta_A:
    "‖Δ_A‖_μ measures the part of A that belongs neither to the signal nor to the uniform attention. Mini-batch noise piles up in this part unless the ℓ1 step removes it.",
  delta_V: "‖Δ_V‖_μ measures the part of V that belongs neither to the signal nor to the starting point. Mini-batch noise piles up in this part.",
  loss: "This is the expected loss ½E‖e_o − VXa‖²; for your own text, it is the mean loss over windows of the text. The thin line shows training with an infinite batch.",
  dist_A_star:
    "‖A* − Q‖_μ is the distance from Q after A has been thresholded and normalised, as in the paper's figure. This distance falls once the true positions stand out from the noise, long before A itself is close to Q.",
  lags: "For each current symbol, the table lists the lags that get the most attention. Lag 1 is the current symbol, which chooses where to look; the model looks at lag 2 and beyond.",
  heads:
    "There is one column for each head and one strip for each last token. Bars show the weight that the head gives to each position. Rings mark the true weights, in the colour of the pattern (the table P) that the position belongs to. A head that has learned one pattern has bars of one colour.",
  singular:
    "Together, the two heads compute a matrix of rank two. Solid lines show the two singular values of this matrix, and dashed lines show those of the task. The larger a singular value is, the sooner it is learned. The dotted line shows how close the less clear of the two heads is to a true head, on a scale from 0 to 1; the upper dashed line marks 1.",
  N: "N is the number of distinct tokens.",
  T: "T is the number of positions, among which attention must find the few that matter.",
  sparsity: "The sparsity, written Q in the paper, is the number of positions that each last token attends to.",
  ensemble:
    "The ensemble says how P is drawn. “Strong” meets the paper's assumption (c), K_P ≥ ‖μ‖². The other ensembles are ordinary random matrices: Dirichlet columns, normalised uniform columns, and the softmax of Gaussians.",
  K_P: "K_P = ‖P − μ1ᵀ‖²_μ measures how sharp P is: it is the contrast that attention can learn from. The value 0 leaves P as it was drawn; for any other value, P is moved towards μ1ᵀ or towards the identity until K_P has that value.",
  taskSeed: "Each seed draws a different task. With the same seed, `scb train --task-seed` draws the same task.",
  recipe:
    "“The paper's” is Algorithm 1 with the settings of the paper's experiment. “Tuned” derives the batch sizes, λ and the end of each stage from theory and measured noise. “SGD” has no ℓ1 step. “Softmax” is plain SGD on a transformer with softmax attention.",
  eta: "η sets the step sizes in the three stages: η_V = η/K_Q and η_A = η/K_P.",
  steps:
    "These are the lengths of the three stages. Stage 1 grows the signal from zero, Stage 2 adds the ℓ1 step, and Stage 3 trains V alone on the normalised attention. The paper's experiment has no Stage 3.",
  batchSize: "B is the number of fresh samples per step. The noise falls as 1/√B.",
  lam: "λ is the amount that the ℓ1 (proximal) step takes off every entry of A in Stage 2. Entries smaller than λ become 0.",
  projector:
    "The projector is applied to the gradient of V to keep Vμ = μ. The paper's Euclidean projector, I − μμᵀ/‖μ‖², lets in noise that does not shrink as T grows; the μ-projector keeps this noise out. By default, the paper's recipe and SGD use the paper's projector, whereas “tuned” and transfer use the μ-projector.",
  resolveSign:
    "A run and its mirror image compute nearly the same function, and noise decides between them. If this option is on, a run whose attention is skewed the wrong way is flipped after the stage. If this option is off, the run is the paper's algorithm as printed.",
  freeze: "A frozen layer stays where it started.",
  runSeed: "This is the seed of the samples. With the same seed, `scb train --seed` draws the same samples.",
  accuracy: "The accuracy is the target for the noise in A and V, from which “tuned” works out its batch sizes.",
  transfer:
    "Transfer keeps the learned V, draws a new Q and starts again from uniform attention. One step on A is followed by Stages 2 and 3 and then by one more step on A. The long first stage is not needed.",
  speed: "The speed is given in steps per second.",
  data: "Each symbol becomes a token, and each window of T + 2 symbols becomes a sample. Each sample consists of T symbols of context, the current symbol, and the next symbol, which is to be predicted.",
};
