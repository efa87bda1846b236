"""Progress before the first draw: a line or a log message, and nothing is left of it.

Nothing is compiled here: stages are told as steps would.
"""

import io
import logging
import sys
import threading

import numpy as np
import pymc as pm
import pytest
from rich.console import Console

import pymc_dapper as pmd
from pymc_dapper.steps import progress as told
from pymc_dapper.steps.progress import progress, stage

PROGRESS = "pymc_dapper.steps.progress"


class Clock:
    """Time that passes when the test says so."""

    def __init__(self):
        self.now = 100.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock(monkeypatch):
    clock = Clock()
    monkeypatch.setattr(told, "perf_counter", clock)
    return clock


@pytest.fixture
def log(caplog):
    caplog.set_level(logging.INFO, logger="pymc.dapper")
    return caplog


def terminal(width=80):
    return Console(file=io.StringIO(), force_terminal=True, force_interactive=True, width=width)


def no_terminal():
    return Console(file=io.StringIO(), force_terminal=False, force_jupyter=False)


def written(console):
    return console.file.getvalue()


def left(console):
    """What is left on the screen: a line is erased by an escape sequence, and then written anew."""
    return written(console).split("\x1b[2K")[-1]


def threads():
    return [thread for thread in threading.enumerate() if "progress" in thread.name]


def refresh():
    told._DISPLAY.get()._live.refresh()


def test_a_line_says_what_is_done_and_how_long_all_has_taken(clock, log):
    console = terminal()
    with progress(show=True, console=console):
        stage("Reading the model")
        refresh()
        clock.now += 3.2
        stage("Compiling DapperStep for 'x'")
        refresh()
        assert "Reading the model ... 0 s" in written(console)
        assert "Compiling DapperStep for 'x' ... 3 s" in written(console)
        clock.now += 10
    assert "Read the model and compiled its steps: 13 s" in left(console)
    assert not log.records


def test_a_line_that_was_short_lived_goes(clock):
    console = terminal()
    with progress(show=True, console=console):
        stage("Reading the model")
        refresh()
        clock.now += 0.9
    assert "Reading the model ... 0 s" in written(console)
    assert left(console).strip("\x1b[?25h\n\r") == ""


@pytest.mark.parametrize("width", [20, 40])
def test_many_names_stay_on_one_line_and_the_time_is_seen(clock, width):
    console = terminal(width)
    with progress(show=True, console=console):
        stage(f"Compiling DapperStep for {', '.join(f"'x{k}'" for k in range(99))}")
        clock.now += 12
        refresh()
        assert "… 12 s" in left(console)
        assert "\n" not in left(console)


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, MemoryError])
@pytest.mark.parametrize("console", [terminal, no_terminal])
def test_an_error_ends_it(clock, log, error, console):
    """The line goes, the cursor comes back, streams are as before, and no thread goes on."""
    console, streams = console(), (sys.stdout, sys.stderr)

    def fail():
        with progress(show=True, console=console):
            stage("Reading the model")
            clock.now += 5
            raise error

    with pytest.raises(error):
        fail()
    assert (sys.stdout, sys.stderr) == streams
    assert threads() == []
    assert "compiled its steps" not in written(console)
    assert not log.records
    assert written(console) == "" or written(console).endswith("\x1b[2K")
    assert written(console).count("\x1b[?25l") == written(console).count("\x1b[?25h")
    assert told._DISPLAY.get() is None
    with progress(show=True, console=terminal()):  # and the next one shows
        assert len(threads()) == 1
    assert threads() == []


def test_the_line_moves_by_itself():
    console, moved = terminal(), threading.Event()

    class Watched(io.StringIO):
        def write(self, text):
            if "Compiling" in text:
                moved.set()
            return super().write(text)

    console.file = Watched()
    with progress(show=True, console=console):
        stage("Compiling")
        assert moved.wait(10)


def test_elsewhere_stages_that_took_a_while_are_in_the_log(clock, log):
    console = no_terminal()
    with progress(show=True, console=console):
        stage("Reading the model")
        clock.now += 0.4
        stage("Compiling DapperStep for 'x'")
        clock.now += 8.3
        stage("Compiling DapperStep for 'x'")
        clock.now += 1
        stage("Checking ConjugateStep for 'p'")
        clock.now += 0.2
        stage("Compiling ConjugateStep for 'p'")
        clock.now += 2
    assert [record.getMessage() for record in log.records] == [
        "Compiling DapperStep for 'x': 9 s",
        "Compiling ConjugateStep for 'p': 2 s",
    ]
    assert written(console) == ""


@pytest.mark.parametrize("widgets", [True, False])
def test_a_notebook_has_a_line_where_it_can(monkeypatch, clock, widgets):
    """Without widgets rich would warn, so the log is used."""
    console = Console(file=io.StringIO(), force_jupyter=True)
    monkeypatch.setattr(f"{PROGRESS}.find_spec", lambda name: object() if widgets else None)
    kinds = []
    monkeypatch.setattr(f"{PROGRESS}._Line", lambda console: kinds.append("line"))
    monkeypatch.setattr(f"{PROGRESS}._Log", lambda: kinds.append("log"))
    told._display(console)
    assert kinds == ["line" if widgets else "log"]


def test_a_terminal_that_cannot_move_its_cursor_has_a_log(monkeypatch):
    monkeypatch.setenv("TERM", "dumb")
    assert isinstance(told._display(Console(file=io.StringIO(), force_terminal=True)), told._Log)


def test_nothing_is_shown_unless_asked_for(clock, log):
    console = terminal()
    stage("Reading the model")
    with progress(show=False, console=console):
        stage("Reading the model")
        clock.now += 60
    assert written(console) == ""
    assert not log.records


def test_inner_contexts_go_on_with_the_line_or_are_silent(clock):
    console, other = terminal(), terminal()
    with progress(show=True, console=console):
        with progress(show=True, console=other):
            stage("Reading the model")
        refresh()
        with progress(show=False):
            stage("Compiling what nobody is told of")
        refresh()
    assert "Reading the model" in written(console)
    assert "nobody" not in written(console)
    assert written(other) == ""


# What steps tell ----------------------------------------------------------------------------------


@pytest.fixture
def stages(monkeypatch):
    """The messages, in order."""
    found = []

    class Recorded(told._Log):
        def stage(self, doing):
            if doing not in found[-1:]:
                found.append(doing)

    monkeypatch.setattr(told, "_display", lambda console: Recorded())
    return found


def model_of_records():
    with pm.Model() as model:
        mu = pm.Normal("mu", 0, 1)
        scale = pm.HalfNormal("scale")
        x = pm.Normal("x", mu, scale, shape=3)
        pmd.LaplaceMechanism(1.0).potential("privacy", x.sum(), released=1.0)
    return model


def model_of_counts():
    with pm.Model() as model:
        p = pm.Dirichlet("p", np.ones(2))
        table = pm.Multinomial("table", n=5, p=p)
        pmd.LaplaceMechanism(1.0).potential("privacy", table, released=np.array([3.0, 2.0]))
    return model


def test_each_step_is_told_with_its_variables(uncompiled, stages):
    pmd.assign_steps(model=model_of_records())
    assert stages[0] == "Reading the model"
    for told_of in (
        "Checking DapperStep for 'x'",
        "Compiling DapperStep for 'x'",
        "Checking ConjugateStep for 'mu'",
        "Compiling ConjugateStep for 'mu'",
        "Compiling NUTS for 'scale'",
        "Checking InterweaveStep for 'mu', 'scale'",
    ):
        assert told_of in stages


def test_steps_for_counts_are_told(uncompiled, stages):
    pmd.assign_steps(model=model_of_counts())
    assert "Compiling CountStep for 'table'" in stages


@pytest.mark.parametrize(
    ("options", "shown"),
    [
        ({}, True),
        ({"progressbar": "combined"}, True),
        ({"progressbar": False}, False),
        ({"quiet": True}, False),
    ],
)
def test_sample_shows_stages_where_pymc_shows_its_bar(
    monkeypatch, uncompiled, stages, options, shown
):
    monkeypatch.setattr("pymc_dapper.sampling.pm.sample", lambda *_, **passed_on: passed_on)
    passed_on = pmd.sample(model=model_of_counts(), **options)
    assert bool(stages) is shown
    assert passed_on.items() >= options.items()
    assert told._DISPLAY.get() is None


def test_assign_steps_shows_stages_unless_it_is_not_to(uncompiled, stages):
    pmd.assign_steps(model=model_of_counts(), progressbar=False)
    assert stages == []
