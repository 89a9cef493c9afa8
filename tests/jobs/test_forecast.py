"""The time left, against machines whose pace is known."""

import io

import pytest
from rich.console import Console

from scb.cli import progress as shown_by
from scb.jobs.forecast import Forecast, crowding

COSTS = {"starting": 2.0, "compiling": 25.0, "running": 30.0, "drawing": 10.0}


class Clock:
    now = 0.0

    def __call__(self):
        return self.now


@pytest.mark.parametrize("pace", [0.5, 1.0, 3.5])
def test_after_the_first_piece_the_time_left_is_right_within_a_factor_of_two(pace):
    """The machine takes ``pace`` seconds for each that was expected. Pieces: at once, one long one, many small ones, twelve."""
    clock = Clock()
    forecast = Forecast(COSTS, clock=clock)
    pieces = {"starting": 1, "compiling": 1, "running": 100, "drawing": 12}
    total = pace * sum(COSTS.values())
    for phase, count in pieces.items():
        forecast.note(phase, 0.0)
        for i in range(count):
            for _ in range(4):  # time passes while nothing is heard
                clock.now += pace * COSTS[phase] / count / 4
                if clock.now > 2.1 * pace:
                    assert 0.5 <= (forecast.left + 1) / (total - clock.now + 1) <= 2, (phase, i)
            if i + 1 < count:  # the end of a phase is the beginning of the next
                forecast.note(phase, (i + 1) / count)
    forecast.note("drawing", 1.0)
    assert forecast.left == 0
    assert forecast.share == 1


def test_what_takes_longer_than_expected_is_not_over():
    clock = Clock()
    forecast = Forecast({"running": 1.0}, clock=clock)
    clock.now = 50.0
    assert forecast.left == pytest.approx(10)
    assert 0 < forecast.share < 1


def test_a_phase_that_turns_out_to_be_nothing_is_left_out():
    clock = Clock()
    forecast = Forecast(COSTS, clock=clock)
    before = forecast.left
    forecast.expect("compiling", 0.0)
    assert before - forecast.left == pytest.approx(25)
    clock.now += 2  # as long as starting was expected to take
    forecast.note("drawing", 0.0)
    clock.now += 5
    forecast.note("drawing", 0.5)
    assert forecast.left == pytest.approx(5)
    assert forecast.phase == "drawing"


def test_lines_where_there_is_no_terminal(monkeypatch):
    """Phase, detail, share and time; on a terminal a bar, which is gone at the end."""
    from threading import Event

    for is_terminal in (False, True):
        stream = io.StringIO()
        console = Console(file=stream, force_terminal=is_terminal, width=80)
        monkeypatch.setattr(shown_by, "terminal", lambda stderr, console=console: console)
        forecast = Forecast({"running": 4.0}, clock=Clock())
        with shown_by.progress(forecast, patience=0.01):
            forecast.note("running", 0.5, "1 of 2 runs")
            Event().wait(0.2)
        assert "running 1 of 2 runs" in stream.getvalue()
        assert "about 1 s left" in stream.getvalue()
        assert ("50%" in stream.getvalue()) is not is_terminal


def test_on_a_crowded_machine_everything_is_expected_to_take_longer(monkeypatch):
    monkeypatch.setattr("os.cpu_count", lambda: 2)
    for load, pace in ((0.0, 1.0), (6.0, 4.0)):
        monkeypatch.setattr("os.getloadavg", lambda load=load: (load, 0.0, 0.0), raising=False)
        assert crowding(workers=2) == pace
        assert Forecast(COSTS, crowding(2), Clock()).left == pytest.approx(pace * sum(COSTS.values()))
