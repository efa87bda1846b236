"""Operations as scalars and loops, held against PyTensor's own evaluation in Python.

Those of `matrices.py` and `reductions.py` are here, too.
"""

import numpy as np
import pytest

from tests.one_function.graphs_to_write import (
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


@pytest.mark.parametrize(
    "name",
    [
        *("switch", "set slice by -2", "look up", "join", "sum over 0"),
        *("split where lengths are known", "cumulated", "triangular"),
    ],
)
def test_operations_that_are_known_call_no_function(name):
    """Others are left to PyTensor's own."""
    text = as_written(list(INPUTS.values()), GRAPHS[name], True)
    assert [name for name in text.names if name.startswith("f")] == []
