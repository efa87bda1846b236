"""How a study is called, and what it shows."""

import sys
from inspect import signature

import pytest

from pymc_dapper import assign_steps
from pymc_dapper.studies import study
from pymc_dapper.studies.cell import STEP_OPTIONS, CellResult
from tests.studies import functions
from tests.studies.runs import run

studies = sys.modules[study.__module__]


def test_a_study_takes_all_that_says_which_steps_sample():
    options = signature(assign_steps).parameters.keys() - {"model", "progressbar"}
    assert {*STEP_OPTIONS} == options | {"target_accept"}


def test_slow_cells_have_a_time_left(monkeypatch):
    """Catches an estimate from the last seconds only, in which there was no cell."""
    bars, clock = [], iter(range(0, 100_000, 40))

    class Shown(studies.Progress):
        def __init__(self, *columns, disable, **options):
            super().__init__(*columns, disable=True, get_time=lambda: next(clock), **options)
            bars.append(self)

    monkeypatch.setattr(studies, "Progress", Shown)
    with studies._progress(10, 0, show=True) as report:
        for _ in range(3):
            report(CellResult("done"))
        assert bars[0].tasks[0].time_remaining > 0


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"executor": "dask"}, TypeError, r"client.get_executor\(\)"),
        ({"executor": 0}, ValueError, "at least 1"),
        ({"executor": True}, TypeError, "executor must be a whole number .*, got True"),
        ({"seed": -1}, ValueError, "seed"),
        ({"seed": 1.5}, TypeError, "seed must be a whole number"),
        ({"timeout": 0}, ValueError, "timeout"),
        ({"timeout": "1"}, TypeError, "timeout must be a finite number"),
        ({"prob": 90}, ValueError, "prob"),
        ({"prob": None}, TypeError, "prob"),
        ({"var_names": "p"}, TypeError, "list of names"),
        ({"store": ""}, ValueError, "store must not be empty"),
        ({"store": 1}, TypeError, "store must be the path of a folder, got 1"),
        ({"on_change": None}, TypeError, "on_change must be 'warn', 'raise' or 'reuse'"),
        ({"missing_information": 1}, TypeError, "missing_information must be True or False"),
        ({"retry_failed": "no"}, TypeError, "retry_failed must be True or False"),
    ],
)
def test_bad_arguments_are_refused(options, error, message):
    with pytest.raises(error, match=message):
        run(**{"executor": 1, **options})


@pytest.mark.parametrize("name", ["random_seed", "step", "cores", "keep_records", "drawz"])
def test_what_a_study_chooses_itself_is_refused(name):
    with pytest.raises(ValueError, match=name):
        study(None, None, functions.GRID, sample_kwargs={name: 1})
