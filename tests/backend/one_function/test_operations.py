"""Operations as scalars and loops, held against PyTensor's own evaluation in Python."""

import numpy as np
import pytest

from tests.backend.one_function.graphs_to_write import (
    VALUES,
    as_written,
    close,
    expected,
    graphs,
    values_of,
    variables,
)

INPUTS = variables()
GRAPHS = graphs(**INPUTS)


@pytest.mark.parametrize("rewrite", [False, True], ids=["as it is", "rewritten"])
@pytest.mark.parametrize("name", GRAPHS)
@pytest.mark.filterwarnings("ignore")
def test_what_is_written_has_the_values_of_pytensors_operations(name, rewrite):
    inputs = list(INPUTS.values())
    given = {key: value.copy() for key, value in VALUES.items()}
    found = values_of(as_written(inputs, GRAPHS[name], rewrite), inputs, given)
    for mine, theirs in zip(found, expected(inputs, GRAPHS[name]), strict=True):
        assert close(np.asarray(mine), np.asarray(theirs))
    for key, value in given.items():
        np.testing.assert_array_equal(value, VALUES[key])


def test_most_operations_are_written_out():
    """A few are left to PyTensor's own functions."""
    inputs = list(INPUTS.values())
    left = {name for name in GRAPHS if " f" in calls(as_written(inputs, GRAPHS[name], True).source)}
    assert len(left) < 0.15 * len(GRAPHS)


def calls(source):
    return "".join(line for line in source.splitlines() if "= f" in line)
