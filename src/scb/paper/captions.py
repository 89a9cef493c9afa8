"""The figures of the report: what each figure shows, its tables, and the function that draws it."""

from scb.paper.entries import PaperFigure

FIGURES = {
    "F1": PaperFigure(
        title="λ = 1e-4 brings A closer to Q than SGD does; the paper's λ = 1e-5 hardly does",
        paper="Figure 1",
        needs=("curves",),
        drawn_by="training:convergence",
        see="The distances of V from P and of A from Q during training, on chains of the ensemble "
        "dirichlet. On these chains the signals are about 0.1 at step 400, as in the paper's own "
        "experiment. Stage 1 is the same for all methods. After Stage 1, λ = 1e-4 brings A closer "
        "to Q than SGD does, whereas the paper's λ = 1e-5 is below the noise of one entry and does "
        "little more than SGD. Stars show the proximal method after A has been thresholded and "
        "normalised.",
    ),
    "F2": PaperFigure(
        title="Softmax and linear attention find the same positions",
        paper="Figure 2",
        needs=("patterns", "softmax"),
        drawn_by="models:softmax",
        see="The softmax and the linear transformer find the same two positions for every token, "
        "and the same transition matrix. Softmax attention leaves a little weight on every other "
        "position, and its V compensates for this weight. The darkest shade stands for attention "
        "of 0.8 or more and for values of 0.5 or more.",
    ),
    "F3": PaperFigure(
        title="Without ℓ₁, the error of A grows along with the signal",
        paper="Appendix I, first figure",
        needs=("curves",),
        drawn_by="training:signals",
        see="The signal α says how much has been learned: 0 at the start, 1 at the truth. The "
        "error ‖Δ‖ is the distance from the path of training without noise. With the larger λ the "
        "error of A stays small, whereas without ℓ₁ it grows.",
    ),
    "F4": PaperFigure(
        title="Once normalised, SGD's attention is as right as the proximal method's",
        paper="Appendix I, second figure",
        needs=("curves",),
        drawn_by="training:similarity",
        see="Before normalisation, the proximal method is ahead of SGD in A. After normalisation, "
        "SGD with the same step size has found the same positions. V after normalisation is not "
        "shown, because it is computed from P itself and is close to P from step 0 on, whatever "
        "has been learned.",
    ),
    "F5": PaperFigure(
        title="At N = 40 the Gaussian simulation agrees with real gradients",
        paper="Appendix I, simulation",
        needs=("gaussian", "prediction"),
        drawn_by="models:simulation",
        see="Training at N = 100 and 500 is simulated with exact expected gradients plus Gaussian "
        "noise. At N = 40, which the authors could not run, the lines show runs with real "
        "gradients, and circles show the simulation of the same steps.",
    ),
    "F6": PaperFigure(
        title="With more tokens, 1,000 steps teach less",
        paper="Appendix I, last figure",
        needs=("convergence", "sizes"),
        drawn_by="training:sizes",
        see="The paper's settings with more tokens: N = 3, 10 and 20.",
    ),
    "F7": PaperFigure(
        title="With transfer, samples hardly grow with T",
        paper="Section 4 (a theorem, without a figure)",
        needs=("transfer", "drift"),
        drawn_by="samples:transfer",
        see="The number of samples until both V and A are within ε of the truth, against the "
        "length T. The dotted line is what Stage 1 needs if its sign is decided by the drift of "
        "the expected gradient alone, as in the paper's proof.",
    ),
    "F8": PaperFigure(
        title="Left to noise, the sign is often wrong; the skewness of A corrects it",
        paper="no counterpart; found by running the algorithm",
        needs=("convergence",),
        drawn_by="training:signs",
        see="(V, A) and its mirror image, in which both signals have the opposite sign, fit almost "
        "equally well. At the paper's batch size of 64, noise chooses between the two. Both panels "
        "use the same tasks and samples, but only the runs of the second panel use the skewness of "
        "A after Stage 1.",
    ),
    "F9": PaperFigure(
        title="Training is a flow of two signals, and real runs follow it",
        paper="Section 3.1 (no figure there)",
        needs=("convergence", "near one"),
        drawn_by="models:flow",
        see="Without noise, training is a flow of the two signals, and real runs follow it. Near "
        "the truth, (1, 1), the difference of the signals hardly moves, because all pairs with "
        "α_V·α_A = 1 fit equally well.",
    ),
    "F10": PaperFigure(
        title="Beyond the paper: the positions show long before training finds them",
        paper="Section 6, an open question",
        needs=("support", "transfer", "drift"),
        drawn_by="samples:support",
        see="The number of samples until the positions of Q are known. The covariances of label "
        "and token form a sparse matrix of rank one, whose support becomes visible with a few "
        "hundred samples. Algorithm 1 counts as successful once A, normalised, is within 0.1 of Q.",
    ),
    "F11": PaperFigure(
        title="Beyond the paper: maximum likelihood comes close to the Cramér–Rao bound",
        paper="no counterpart",
        needs=("bound",),
        drawn_by="samples:bound",
        see="The squared error of maximum likelihood, on the support that it has found, divided by "
        "the smallest squared error that an unbiased estimate can have. A biased estimate can lie "
        "below 1.",
    ),
    "F12": PaperFigure(
        title="Beyond the paper: one long sequence suffices for the likelihood, not for moments",
        paper="Section 6, an open question",
        needs=("sequences",),
        drawn_by="samples:sequences",
        see="How often the support is found exactly from one sequence, whose windows overlap. "
        "Maximum likelihood does not need independent samples. Estimates from moments do need "
        "them: on a sequence they also mark neighbours of the true positions.",
    ),
    "F13": PaperFigure(
        title="Noise wins where batches and K_P are small",
        paper="Appendix I (no figure there)",
        needs=("noise wins",),
        drawn_by="phase:noise_wins",
        see="The share of tasks that are not lost to noise. A task is lost if after 1,000 steps A, "
        "normalised, is not within 0.1 of Q, and ‖Δ_A‖ is not below the signal either. Ordinary "
        "random matrices of this size have a K_P of about 0.03; at B = 64 all methods lose all "
        "tasks with such matrices. With larger batches or a larger K_P, the proximal method with λ "
        "= 1e-5 saves the most tasks overall.",
    ),
    "F14": PaperFigure(
        title="With the μ-projector, Stage 1 needs about T samples instead of T²",
        paper="Section 3, the preconditioner of V (no figure there)",
        needs=("start noise", "wrong signs", "stage one"),
        drawn_by="projector:projectors",
        see="Steps on V must keep Vμ = μ. The paper's projector leaves noise that does not fall as "
        "T grows, and the sign is lost in this noise. The μ-projector leaves noise of order 1/T, "
        "so the samples of Stage 1 grow like T instead of T².",
    ),
    "F15": PaperFigure(
        title="Samples grow more slowly than the paper's bounds",
        paper="Theorem 3.1 and its lemmas (no figure there)",
        needs=("rates",),
        drawn_by="rates:rates",
        see="How the smallest number of samples with which each stage succeeds grows with one "
        "size. Exponents measured in real runs are shown next to the printed exponents, which are "
        "upper bounds. The paper's bounds themselves are far larger; only exponents are compared.",
    ),
    "F16": PaperFigure(
        title="ℓ₁ keeps the error of A from growing with T",
        paper="Section 3.3 (no figure there)",
        needs=("stage two", "stage two error"),
        drawn_by="rates:regulariser",
        see="Without the proximal step, the error ‖Δ_A‖² grows like T, and so does the number of "
        "samples until A, without normalisation, is near Q. With the proximal step, the number of "
        "samples hardly depends on T. F27 shows what is left of this difference once A is "
        "normalised.",
    ),
    "F17": PaperFigure(
        title="How softmax attention learns depends on its step size, and so does its error",
        paper="Section 5.2",
        needs=("attention", "dirichlet attention"),
        drawn_by="rates:softmax",
        see="The samples until the signal shows, and the error ‖Δ_A‖ when the signal has reached "
        "one half, for softmax attention, the proximal method and SGD, on two ensembles.",
    ),
    "F18": PaperFigure(
        title="Inside Assumption 2.1, with batches that can be run, noise still picks the sign",
        paper="Assumption 2.1, with (d)",
        needs=("theorem",),
        drawn_by="rates:theorem",
        see="Algorithm 1 as printed at T = (NQ)^10, where Assumption 2.1 holds, with the paper's "
        "projector and with the μ-projector.",
    ),
    "F19": PaperFigure(
        title="Algorithm 1 learns from windows of one sequence, too",
        paper="Section 2.1, the extension",
        needs=("windows", "marginal"),
        drawn_by="rates:windows",
        see="The first panel shows how far the frequencies of tokens in a long sequence are from "
        "μ. The other panels show the distances from the truth after training on windows of one "
        "sequence instead of independent samples, with the true μ and with μ estimated by these "
        "frequencies.",
    ),
    "F20": PaperFigure(
        title="Transfer works below the overlap that the paper requires",
        paper="Section 4 and Appendix H (no figure there)",
        needs=("pretrained", "overlaps"),
        drawn_by="transfer:pretrained",
        see="V̂ is trained on a related task. The first two panels show how often both V and A are "
        "learned, against the overlap of the two tasks. Transfer still works somewhat below the "
        "overlap that the paper requires. The last panel shows how many samples transfer needs at "
        "other sizes, sparsities and distributions, and how many of the runs learn.",
    ),
    "F21": PaperFigure(
        title="At N = 500, real gradients agree with the simulation",
        paper="Appendix I, simulation",
        needs=("real gradients",),
        drawn_by="large:real",
        see="The largest of the sizes that the paper could only simulate, run with real gradients "
        "on a GPU and compared with the simulation at the same settings.",
    ),
    "F22": PaperFigure(
        title="By the drift alone, Stage 1 needs about T² samples; with the μ-projector, about T",
        paper="Section 3.2 (no figure there)",
        needs=("long signs",),
        drawn_by="large:signs",
        see="Stage 1 with the sign decided by the drift alone, up to T = 500,000. The smallest "
        "batch that finds the right sign grows like T² with the paper's projector, and like T with "
        "the μ-projector.",
    ),
    "F23": PaperFigure(
        title="At larger sizes, too, samples grow more slowly than the paper's bounds",
        paper="Theorem 3.1 and its lemmas (no figure there)",
        needs=("large rates",),
        drawn_by="rates:large_rates",
        see="The exponents of F15 at much larger sizes, from few searches.",
    ),
    "F24": PaperFigure(
        title="At the planner's batch sizes, every stage keeps its promise",
        paper="the lemmas of Appendices D to F (no figure there)",
        needs=("plan",),
        drawn_by="large:plan",
        see="One run with exactly the settings that the lemmas require, on the smallest task for "
        "which these settings can be run. Crosses show what the lemmas guarantee.",
    ),
    "F25": PaperFigure(
        title="A real transformer needs more samples, and more so the longer the context",
        paper="no counterpart",
        needs=("transformers", "transformer rivals"),
        drawn_by="transformers:samples",
        see="The first two panels show the number of samples until a tenth of the excess loss is "
        "left, against the length T. A transformer needs more samples the longer the context is, "
        "and many more than Algorithm 1 and recover. Triangles mark sizes that were not learned "
        "with that many samples. Centring the values, or keeping the values of another task, "
        "helps. The last panel shows the effect of single changes.",
    ),
    "F26": PaperFigure(
        title="In a real transformer, attention and values grow together after a plateau",
        paper="Figures 1 and 2, for another model",
        needs=("transformer stages", "decoders"),
        drawn_by="transformers:stages",
        see="After a plateau, attention and values grow together, and then the attention is ahead. "
        "With values kept from another task, the path comes from the other side. The last panel "
        "shows that a decoder trained on one sequence finds the lags if it predicts only the token "
        "after a window. If the decoder predicts after every position, it is far from finding them "
        "after the same time.",
    ),
    "F27": PaperFigure(
        title="Where Algorithm 1 ends, ℓ₁ buys stability",
        paper="Section 3.3 and Algorithm 1 (no figure there)",
        needs=("least to the end", "to the end", "long ends"),
        drawn_by="questions:to_the_end",
        see="The smallest batch with which Stage 2 comes within ε. If success is judged at the end "
        "of Stage 2, the batch without ℓ₁ grows like T, because ‖Δ_A‖² is a sum over T entries. If "
        "success is judged at the end of Algorithm 1, the batch does not grow like T: the "
        "threshold before Stage 3 acts on the entries one by one, and needs only the largest of NT "
        "entries to be small, which grows like √log T. Without ℓ₁, T still matters for stability "
        "(dotted), which requires a batch that grows like √T: with a smaller batch, steps on V "
        "overshoot, because their curvature is ‖A‖², and the run diverges. With ℓ₁, runs hardly "
        "ever diverge, and the batch does not depend on T; up to T = 10⁶ it is larger than the "
        "batch without ℓ₁ for this ε.",
    ),
    "F28": PaperFigure(
        title="The T² of Stage 1 comes from the paper's projector",
        paper="Section 3.2 and Appendix D (no figure there)",
        needs=("spread of mu",),
        drawn_by="questions:spread_of_mu",
        see="The smallest batch that finds the sign by the drift alone, as the stationary "
        "distribution μ departs from uniform. At uniform μ, the paper's projector and the "
        "μ-projector are the same, and the batch grows like T. With the paper's projector, the "
        "batch grows like T² as soon as μ is not uniform and T is long.",
    ),
    "F29": PaperFigure(
        title="Transfer by the letter of Theorem 4.1 works where its condition holds, and beyond",
        paper="Theorem 4.1 (no figure there)",
        needs=("transfer to the letter",),
        drawn_by="questions:transfer_to_the_letter",
        see="The first panel shows how often transfer exactly as in the theorem learns both "
        "layers, against its condition on the two tasks. The second panel shows Δ_V. Where the "
        "overlap is small, Δ_V is larger than the signal at the start, but its influence on the "
        "attention is small all the same, and Δ_V does not grow.",
    ),
    "F30": PaperFigure(
        title="How softmax scales with T is set by how its step size does",
        paper="Section 5.2 (no figure there)",
        needs=("softmax steps",),
        drawn_by="questions:softmax_steps",
        see="The growth of the step size of the logits with T determines how the time until the "
        "signal shows grows with T. The upper panels show the samples until the signal shows, and "
        "the lower panels show what has been learned in the end. Larger steps are faster but end "
        "farther from Q.",
    ),
    "F31": PaperFigure(
        title="On another ensemble, too, samples grow more slowly than the paper's bounds",
        paper="Theorem 3.1 and its lemmas (no figure there)",
        needs=("dirichlet rates",),
        drawn_by="rates:rates_elsewhere",
        see="The exponents of F15 on chains of the ensemble dirichlet, moved to the same K_P.",
    ),
    "F32": PaperFigure(
        title="Around a longer context, too, samples grow more slowly than the bounds",
        paper="Theorem 3.1 and its lemmas (no figure there)",
        needs=("longer rates",),
        drawn_by="rates:longer_rates",
        see="The exponents of F15 around T = 1,600, where the sign decides how many samples Stage "
        "1 needs.",
    ),
    "F33": PaperFigure(
        title="Heads learn one pattern after another, and can be told apart afterwards",
        paper="Appendix A, the first limitation (no figure there)",
        needs=("heads", "sparse heads"),
        drawn_by="heads:several_heads",
        see="Heads learn the singular values of the task one after another, at times that can be "
        "predicted. Heads that start alike stop at the best function of one head. The learned "
        "heads are mixtures of the true heads until ℓ₁ or a rotation separates them.",
    ),
}
