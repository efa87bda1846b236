"""Random numbers drawn in compiled code, from the generator that a chain has."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytensor.scalar as ps
import pytensor.tensor as pt
from pytensor.graph import Apply, Constant, Op, Variable, graph_replace
from pytensor.graph.traversal import applys_between
from pytensor.tensor.random.type import RandomGeneratorType, random_generator_type

from pymc_dapper.backend import draws
from pymc_dapper.backend.accelerate import switch
from pymc_dapper.backend.in_python import KernelOp
from pymc_dapper.backend.numba_ops import compiles, numba_njit


class Drawn(KernelOp):
    """Random numbers from a generator, drawn by a kernel.

    Inputs are the generator, the number of draws, how many of them belong together, and vectors of
    float64. Outputs are the generator, and a vector. The next draw takes the output generator as
    its input, which fixes the order of draws.

    Parameters
    ----------
    kernel : callable
        For numba: ``kernel(rng, width, out, *vectors)`` fills ``out``, by `backend.draws`.
    """

    __props__ = ("kernel",)
    by_address = True

    def __init__(self, kernel: Callable):
        self.kernel = kernel

    def make_node(
        self, rng: Variable, length: Variable | int, width: Variable | int = 1, *inputs: Variable
    ) -> Apply:
        """Apply to a generator, the numbers of draws, and what they depend on."""
        n, *vectors = (pt.as_tensor(x) for x in (length, *inputs))
        static = int(n.data) if isinstance(n, Constant) else None
        drawn = pt.tensor("drawn", dtype="float64", shape=(static,))
        numbers = [pt.scalar_from_tensor(pt.as_tensor(x).astype("int64")) for x in (n, width)]
        return Apply(self, [rng, *numbers, *vectors], [random_generator_type(), drawn])


class DrawnInPython(Op):
    """Random numbers from a generator, drawn by a function in Python: ``draw(rng, *inputs)``."""

    __props__ = ("draw", "length")

    def __init__(self, draw: Callable[..., np.ndarray], length: int):
        self.draw, self.length = draw, length

    def make_node(self, rng: Variable, *inputs: Variable) -> Apply:
        """Apply to a generator and what the draws depend on."""
        drawn = pt.tensor("drawn", dtype="float64", shape=(self.length,))
        return Apply(self, [rng, *inputs], [random_generator_type(), drawn])

    def perform(self, node: Apply, inputs: Any, output_storage: Any) -> None:
        """Draw; compiled code calls this."""
        rng, *others = inputs
        drawn = np.array(self.draw(rng, *others), dtype="float64").reshape(self.length)
        output_storage[0][0], output_storage[1][0] = rng, drawn


def drawn_noise(kind: str, shape: tuple[int, ...], rng: Variable) -> tuple[Variable, Variable]:
    """Draw standard noise as a method of NumPy's generators does: the generator, and an array."""
    rng, flat = Drawn(NOISE[kind])(rng, int(np.prod(shape)))
    return rng, flat.reshape(shape)


NOISE: dict[str, Callable] = {
    "random": draws.fill_uniform,
    "standard_normal": draws.fill_normal,
    "standard_exponential": draws.fill_exponential,
}
"""Kernels by the method of NumPy's ``Generator`` that draws the same."""


@compiles(Drawn)
def _drawn(op: Drawn) -> Callable:
    fill = op.kernel

    @numba_njit
    def drawn(rng, length, width, *vectors):  # type: ignore[no-untyped-def]
        out = np.empty(length)
        fill(rng, width, out, *vectors)
        return rng, out

    return drawn


class GeneratorAt(Op):
    """The generator that lies at an address: in compiled code, the address."""

    __props__ = ()

    def make_node(self, address: Variable) -> Apply:
        """Apply to the address."""
        return Apply(self, [address], [random_generator_type()])

    def perform(self, node: Apply, inputs: Any, output_storage: Any) -> None:
        """Addresses are for compiled code alone."""
        raise NotImplementedError


@compiles(GeneratorAt)
def _generator_at(op: GeneratorAt) -> Callable:
    @numba_njit
    def generator_at(address):  # type: ignore[no-untyped-def]
        return address

    return generator_at


def by_address(
    inputs: Sequence[Variable], outputs: Sequence[Variable]
) -> tuple[list[Variable], list[Variable]]:
    """Make a function take addresses instead of generators, if all its draws are by our operations.

    Our operations have an attribute ``by_address``. Draws that numba hands to Python need the
    generator.
    """
    taking = [
        node.op
        for node in applys_between(inputs, outputs)
        if any(isinstance(x.type, RandomGeneratorType) for x in node.inputs)
    ]
    ours = all(getattr(op, "by_address", False) for op in taking)
    if not switch.is_on("generators") or not ours:
        return list(inputs), list(outputs)
    new: dict[Variable, Variable] = {
        x: ps.int64("address") for x in inputs if isinstance(x.type, RandomGeneratorType)
    }
    at: Any = {x: GeneratorAt()(address) for x, address in new.items()}
    return [new.get(x, x) for x in inputs], graph_replace(outputs, at, strict=False)
