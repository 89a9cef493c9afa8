"""The progress of a training run, on a terminal or in a notebook."""

import sys
from html import escape
from shutil import get_terminal_size
from time import monotonic
from typing import Any

from scb.inputs import integer
from scb.notebook import in_notebook
from scb.training.run import Run

_PAUSE = 0.1  # seconds between two updates


class ProgressBar:
    """A callback for ``scb.train`` that shows the progress of a run.

    The bar shows the stage, the step, the signals and the time left.

    In a notebook, the bar updates one output; on a terminal, it updates one line of stderr. If
    stderr is not a terminal, the bar shows nothing.

    Parameters
    ----------
    steps : int
        The number of steps of the whole run, which is ``recipe.steps``. If stages end early, the
        bar jumps to its end.

    Examples
    --------
    >>> import scb
    >>> task = scb.Task.random(N=3, T=40, sparsity=2, seed=0)
    >>> recipe = scb.recipes.paper(task, steps=(20, 20, 0))
    >>> bar = scb.ProgressBar(recipe.steps)
    >>> run = scb.train(task, recipe, callbacks=[bar])
    >>> bar.begun
    True
    """

    def __init__(self, steps: int) -> None:
        self._steps = max(integer("steps", steps, low=0), 1)
        self._begun: tuple[int, float] | None = None  # step and time of the first call
        self._shown = -_PAUSE
        self._output: Any = None  # what a notebook shows

    @property
    def begun(self) -> bool:
        """Whether the run has taken a step since the bar was made."""
        return self._begun is not None

    def __call__(self, run: Run) -> None:
        """Show the current state of the run."""
        now = monotonic()
        if self._begun is None:
            self._begun = (run.step, now)
        if run.finished or now >= self._shown + _PAUSE:
            self._shown = now
            # a stage may end early
            share = 1.0 if run.finished else min(run.step / self._steps, 1.0)
            self._show(share, self.text(run, now), run.finished)

    def text(self, run: Run, now: float) -> str:
        """Format the text next to the bar.

        The text gives the stage, the step, the signals, and the time left or, at the end, the time
        taken.

        Parameters
        ----------
        run : Run
            The current state of the run.
        now : float
            The current time in seconds, as ``time.monotonic`` returns it.

        Returns
        -------
        str
            The text.

        Examples
        --------
        >>> import scb
        >>> task = scb.Task.random(N=3, T=40, sparsity=2, seed=0)
        >>> run = scb.train(task, scb.recipes.paper(task, steps=(20, 20, 0)))
        >>> scb.ProgressBar(40).text(run, now=0.0)
        'stage 2  step 40  α_V +0.014  α_A +0.002  0 s'
        """
        last = {name: column[-1] for name, column in run.history.items()}
        of = "" if run.finished else f" of {self._steps:,}"
        parts = [
            f"stage {last['stage']:.0f}  step {run.step:,}{of}",
            f"α_V {last['alpha_V']:+.3f}  α_A {last['alpha_A']:+.3f}",
        ]
        step, begin = self._begun or (run.step, now)
        if run.finished:
            parts.append(f"{now - begin:.0f} s")
        elif run.step > step:
            parts.append(
                f"{(now - begin) / (run.step - step) * (self._steps - run.step):.0f} s left"
            )
        return "  ".join(parts)

    def _show(self, share: float, text: str, last: bool) -> None:
        if in_notebook():
            self._show_html(share, text)
        elif sys.stderr is not None and sys.stderr.isatty():
            full = round(share * 16)
            line = "━" * full + "╌" * (16 - full) + f" {text}"
            fits = get_terminal_size().columns - 1  # a line that breaks cannot be written over
            print(f"\r\x1b[2K{line[:fits]}", end="\n" if last else "", file=sys.stderr, flush=True)

    def _show_html(self, share: float, text: str) -> None:
        from IPython.display import HTML, display  # pyright: ignore[reportMissingImports]

        page = HTML(f'<progress value="{share:.4f}"></progress> <code>{escape(text)}</code>')
        if self._output is None:
            self._output = display(page, display_id=True)
        else:
            self._output.update(page)
