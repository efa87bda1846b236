"""Operations that numba compiles, evaluated in Python: slow to run, and nothing to compile.

A kernel is a function of Python's, too. So PyTensor's Python modes evaluate an operation by the
very source that numba compiles, and the model's graphs in it operation by operation.
"""

from collections.abc import Callable, Sequence
from types import CellType, CodeType, FunctionType
from typing import Any, ClassVar

import numpy as np
from numba.extending import is_jitted
from pytensor.graph import Apply, Op, Variable
from pytensor.graph.fg import FrozenFunctionGraph
from pytensor.scalar.basic import Composite
from pytensor.tensor.type import TensorType

from pymc_dapper.backend.accelerate.external import ExternalKernel, Given
from pymc_dapper.backend.evaluated import Evaluated
from pymc_dapper.backend.numba_ops import MODEL_PARTS, numba_function


class KernelOp(Op):
    """An operation whose numba function `compiles` registers.

    Its arguments are its properties, in the order of ``__props__``. Its outputs are of the types in
    ``results``, unless it has a ``make_node`` of its own.
    """

    __props__: ClassVar[tuple[str, ...]] = ()
    results: ClassVar[Sequence[TensorType]] = ()

    def __init__(self, *properties: Any):
        for name, value in zip(self.__props__, properties, strict=True):
            setattr(self, name, value)

    def make_node(self, *inputs: Variable) -> Apply:
        """Apply the operation to the arguments of its numba function."""
        return Apply(self, list(inputs), [kind() for kind in self.results])

    def prepare_node(
        self, node: Apply, storage_map: Any, compute_map: Any, impl: str | None
    ) -> None:
        """Make the function that evaluates the operation, as long as its graph is compiled."""
        node.tag.in_python = in_python(numba_function(self))

    def perform(self, node: Apply, inputs: Any, output_storage: Any) -> None:
        """Evaluate the operation in Python."""
        function = getattr(node.tag, "in_python", None) or in_python(numba_function(self))
        with np.errstate(all="ignore"):  # compiled code doesn't warn of infinite numbers, either
            outputs = function(*inputs)
        outputs = outputs if len(node.outputs) > 1 else (outputs,)
        for storage, output in zip(output_storage, outputs, strict=True):
            storage[0] = output


def in_python(function: Any, made: dict[Callable, Callable] | None = None) -> Callable:
    """Make a Python function of a numba function and all functions that it calls.

    Parameters
    ----------
    function : callable
        A function for numba, decorated.
    made : dict, optional
        Functions that are made already.
    """
    made = {} if made is None else made
    if isinstance(function, ExternalKernel):
        function = function.kernel
    if isinstance(function, Given):
        function = function.function
    if function in made:
        return made[function]
    if function in MODEL_PARTS:
        made[function] = _function_of(MODEL_PARTS[function])
        return made[function]
    source = function.py_func
    code = source.__code__
    names, cells = dict(source.__globals__), tuple(CellType() for _ in source.__closure__ or ())
    made[function] = FunctionType(code, names, source.__name__, source.__defaults__, cells)

    def plain(value: Any) -> Any:
        is_ours = isinstance(value, Given | ExternalKernel) or is_jitted(value)
        return in_python(value, made) if is_ours else value

    # Filled afterwards, as functions may refer to each other in a circle.
    for name in _names(code) & names.keys():
        names[name] = plain(names[name])
    for cell, original in zip(cells, source.__closure__ or (), strict=True):
        cell.cell_contents = plain(original.cell_contents)
    return made[function]


def _names(code: CodeType) -> set[str]:
    inner = [_names(each) for each in code.co_consts if isinstance(each, CodeType)]
    return {*code.co_names}.union(*inner)


def _function_of(part: FrozenFunctionGraph | Composite) -> Callable:
    """Evaluate a part of a model like `function_of`; a single output is returned itself."""
    if isinstance(part, Composite):
        return part.impl
    graph = part.unfreeze()
    evaluated = Evaluated(graph.inputs, graph.outputs, check_bounds=None)
    return evaluated if len(graph.outputs) > 1 else lambda *values: evaluated(*values)[0]
