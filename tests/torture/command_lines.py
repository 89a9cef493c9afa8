"""Command lines for the fuzzer: each command with its options, and words that may not fit."""

from pathlib import Path

from hypothesis import strategies as st

WORDS = st.sampled_from(
    [
        "3",
        "0",
        "-1",
        "nan",
        "inf",
        "1e400",
        "x",
        "",
        "--",
        "--help",
        "[/b]",
        "λ",
        "\ud800",
        "9" * 40,
        "text.txt",
        "nowhere",
        ".",
        "fit",
    ]
)
TASK = ("--N", "--sparsity", "--ensemble", "--K-P", "--task-seed")
OPTIONS = {
    "plan": ["--eps", "--delta", "--k-p", "--k-q", "--overlap", "--eta"],
    "show": [],
    "sample": ["--length", "--seed", "--separator"],
    "fit": ["--max-lag", "--lags", "--split", "--by", "--top", "--sep", "--column", "--group", "--halves", "--background"],
    "train": [*TASK, "--seed", "--every", "--set", "--recipe", "--config", "--eta", "--lam", "--batch-size", "--source"],
    "sweep": ["--status", "--jobs", "--scheduler"],
    "reproduce": ["--seeds", "--shipped", "--jobs"],
    "bench": ["--sizes", "--repeats", "--baselines"],
    "lab": ["--scene"],
}
# How a command begins that comes far; without, it begins with a word. Those that would take long, or open a browser, always do.
BEGIN = {
    "plan": [["3", "100", "2"]],
    "show": [["fit"], ["run"]],
    "sample": [["fit"], ["fit/model.safetensors"]],
    "fit": [["text.txt", "--halves", "0", "--out", "fit"], ["table.csv", "--column", "a", "--halves", "0", "--out", "fit"]],
    "train": [["--recipe", "paper", "--T", "9", "--set", "steps=[2,0,0]", "--out", "run"]],
    "reproduce": [["--only", "F99"], ["--only", "[/b]"], ["--only", "F1,λ"]],
    "bench": [["--sizes", "x"]],
    "sweep": [["nowhere.toml"], ["sweep.toml", "--out", "sweep", "--jobs", "1"], ["--status", "sweep"]],
    "lab": [["--out", "lab.html"]],
}
ALWAYS = ("reproduce", "bench", "sweep", "lab")
LONG = ("--jobs", "--scheduler")  # with a sweep that exists they would start processes


def furnish(folder: Path) -> None:
    """What command lines read: files of each kind. Models and runs are made by those that come first."""
    (folder / "text.txt").write_text("abacabadabacaba" * 6)
    (folder / "table.csv").write_text("a,b,g,t\n" + "".join(f"{'xyz'[i * i % 3]},{i},{i // 9},{-i}\n" for i in range(40)))
    (folder / "lines.jsonl").write_text('["x", "y", "x"]\n["y", null]\n')
    (folder / "sweep.toml").write_text('kind = "recover"\nseeds = 1\n[fixed]\nT = 6\nsamples = 20\n[grid]\nN = [2, 3]\n')


@st.composite
def command_lines(draw: st.DrawFn) -> list[str]:
    """A command with options, each followed by a word that may not fit."""
    name = draw(st.sampled_from(sorted(OPTIONS)))
    begin = draw(st.sampled_from(BEGIN[name])) if name in ALWAYS or draw(st.integers(0, 3)) else [draw(WORDS)]
    more = []
    for option in draw(st.lists(st.sampled_from(OPTIONS[name]), max_size=2)) if OPTIONS[name] else []:
        word = draw(WORDS)
        if not (option in LONG and "sweep.toml" in begin):
            more += [option, f"lam={word}" if option == "--set" else word]
    return [name, *begin, *more]
