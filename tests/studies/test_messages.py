"""What is kept of an exception: enough to find it, and no values."""

import json

import numpy as np
import pytest

import pymc_dapper as pmd
from pymc_dapper import ReadingError
from pymc_dapper.studies.cell import CellRunner
from pymc_dapper.studies.grid import read_grid
from pymc_dapper.studies.messages import StudyError, error_message

PEOPLE = {"Jane Doe": 41250.5}


def numbers():
    raise ValueError(f"the incomes {list(PEOPLE.values())} are too high: {next(iter(PEOPLE))}")


def of_numpy():
    return np.array(list(PEOPLE)).astype(float)


def of_a_dict():
    return {}[next(iter(PEOPLE))]


def of_json():
    return json.loads(json.dumps(PEOPLE)[:-1])


def of_a_file():
    return open(f"/no such folder/{next(iter(PEOPLE))}")


def told(function):
    try:
        function()
    except Exception as error:
        return error_message("simulate", error)
    raise AssertionError("nothing was raised")


@pytest.mark.parametrize("function", [numbers, of_numpy, of_a_dict, of_json, of_a_file])
def test_values_are_left_out(function):
    message = told(function)
    for part in ("Jane", "Doe", "41250"):
        assert part not in message
    assert message.startswith("simulate: ")
    assert message.endswith(" of test_messages.py (its text is left out)")


def test_the_line_is_told():
    line = numbers.__code__.co_firstlineno + 1
    assert told(numbers).startswith(f"simulate: ValueError: line {line} of test_messages.py (")


def test_a_text_of_the_source_is_kept():
    def unknown():
        raise ValueError("no such share")

    assert told(unknown) == "simulate: ValueError: no such share"


def test_what_is_looked_up_by_a_text_is_told():
    """As build does it with what was released."""
    assert told(lambda: {}["count"]) == "simulate: KeyError: 'count'"


def test_of_packages_the_line_that_calls_them_is_told():
    def with_a_package():
        pmd.LaplaceMechanism(-41250.5)

    line = with_a_package.__code__.co_firstlineno + 1
    assert told(with_a_package).startswith(f"simulate: ValueError: line {line} of test_messages.py")
    assert "41250" not in told(with_a_package)


def test_an_error_without_a_text_has_its_kind():
    def read():
        raise ReadingError("")

    assert told(read) == "simulate: ReadingError"


def test_what_the_study_says_is_kept_as_it_is():
    assert error_message("build", StudyError("the shape is (3,)")) == "build: the shape is (3,)"


def test_lack_of_memory_says_how_much():
    def large():
        return np.empty((2**40, 2**10))

    assert "MemoryError: Unable to allocate 8.00 PiB" in told(large)


@pytest.mark.parametrize(
    ("simulate", "message"),
    [
        (lambda rng, share: list(PEOPLE), "simulate must return two dicts, .*got list"),
        (lambda rng, share: (PEOPLE, 3), "simulate must return two dicts, .*got dict, int"),
        (lambda rng, share: int(f"share of {next(iter(PEOPLE))}"), "line "),
    ],
)
def test_a_cell_tells_no_values(simulate, message):
    [cell] = read_grid({"share": [0.3]}, 1).cells
    runner = CellRunner(simulate, never, 1, None, 0.9, None, False, {})
    result = runner(cell)
    assert result.status == "failed"
    assert "Jane" not in result.message
    assert "41250" not in result.message


def never(released, share):
    raise AssertionError
