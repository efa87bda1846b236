"""Graphs of a reading evaluated in Python, at states of the records."""

from collections.abc import Callable, Sequence

import numpy as np
from pymc import Model
from pymc import compile as pymc_compile
from pytensor.compile.mode import OPT_MINIMUM, Mode
from pytensor.graph.basic import Variable
from pytensor.graph.traversal import explicit_graph_inputs
from pytensor.tensor.variable import TensorVariable

from pymc_dapper.backend.evaluated import FEW_OPERANDS, Evaluated, can_be_evaluated
from pymc_dapper.backend.internals import VMLinker
from pymc_dapper.graphs.rebuild import dependent_variables

# With the place of the rewrite that says what is done with invalid parameters, and no other there.
AS_WRITTEN = Mode(
    VMLinker(use_cloop=False, c_thunks=False), OPT_MINIMUM.including("canonicalize_db")
).register(FEW_OPERANDS)
"""Operations are evaluated one after the other, as the graph has them.

To rewrite a graph takes longer than a few evaluations of it, and may change what it says: of
``x / x`` it makes 1.
"""

# Sums over records are formed in another order than in the model: rounding, far below this.
TOLERANCE = {"float64": 1e-8, "float32": 1e-5}


def compile_in_python(
    model: Model, inputs: Sequence[Variable], outputs: Sequence[Variable]
) -> Callable[..., list[np.ndarray]]:
    """Make a function of a graph without compiling it, for what is called a few times at most.

    As in PyMC's own functions, a log-density with invalid parameters is minus infinity; unchecked
    in a model with ``check_bounds=False``. What stands for shared data, and isn't among the inputs,
    has their present value.
    """
    if can_be_evaluated(inputs, outputs):
        return Evaluated(inputs, outputs, check_bounds=model.check_bounds)
    data = {
        x: x.tag.stands_for
        for x in explicit_graph_inputs(outputs)
        if hasattr(x.tag, "stands_for") and x not in inputs
    }
    with model:
        function: Callable[..., list[np.ndarray]] = pymc_compile(
            list(inputs), list(outputs), givens=data, mode=AS_WRITTEN, on_unused_input="ignore"
        )
    return function


def choose_rows(
    which: np.ndarray, yes: Sequence[np.ndarray], no: Sequence[np.ndarray]
) -> list[np.ndarray]:
    """Take the rows of some records from one state, those of the others from another."""
    return [
        np.where(which.reshape((-1,) + (1,) * (a.ndim - 1)), a, b)
        for a, b in zip(yes, no, strict=True)
    ]


def rounding(records: Sequence[TensorVariable], graphs: Sequence[TensorVariable]) -> float:
    """Return the relative rounding to expect, by the least precise number computed from records."""
    computed = dependent_variables(records, graphs)
    single = any(getattr(x.type, "dtype", None) in ("float16", "float32") for x in computed)
    return TOLERANCE["float32" if single else "float64"]


def agree(computed: float, expected: float, allowed: float) -> bool:
    """Compare log-densities, up to some of their size; all that aren't finite are the same."""
    if not np.isfinite(expected):
        return not np.isfinite(computed)
    return bool(abs(computed - expected) <= allowed * (1 + abs(expected)))
