"""What a model's factors depend on: sums over records, and other log-densities."""

from collections.abc import Callable, Sequence
from functools import cached_property
from math import prod

import numpy as np
from numpy.typing import NDArray
from pytensor.graph.replace import vectorize_graph
from pytensor.tensor.variable import TensorVariable

from pymc_dapper.graphs.checks import localise_checks
from pymc_dapper.graphs.evaluation import compile_in_python
from pymc_dapper.records.reading.description import written
from pymc_dapper.records.reading.factors import AdditiveFactor
from pymc_dapper.records.reading.model import ModelReading

MOST_NUMBERS = 1_000
"""Most numbers that are taken; of more, an even selection."""
MOST_AT_ONCE = 1_000_000
"""Records times numbers that are evaluated at once."""


class SufficientStatistics:
    """The numbers through which factors depend on the records: sums, or whole log-densities.

    Attributes
    ----------
    names : list of str
        Name of each number.
    at_once : int
        Most states that are evaluated at once, to save memory.
    """

    def __init__(self, reading: ModelReading):
        graphs = [sum_.total for sum_ in reading.sums]
        names: list[str] = []
        for sum_ in reading.sums:
            name, n = f"the sum of {written(sum_.contributions)}", _size(sum_.total)
            names += [name] if n == 1 else [f"entry {k} of {name}" for k in range(n)]
        others = [x for x in reading.factors if not isinstance(x, AdditiveFactor)]
        graphs += [factor.as_written for factor in others]
        names += [f"the log-density of '{factor.name}'" for factor in others]
        self._every = -(-len(names) // MOST_NUMBERS)
        self.names = names[:: self._every]
        self.at_once = max(1, MOST_AT_ONCE // (reading.n_records * len(names)))
        self._reading, self._graphs = reading, graphs
        self._inputs = [*reading.records, *reading.parameters]

    def __call__(
        self, records: Sequence[np.ndarray], parameters: Sequence[np.ndarray]
    ) -> NDArray[np.float64]:
        """Evaluate these numbers, shape (k,), in Python."""
        with np.errstate(all="ignore"):
            values = self._at_one(*records, *parameters)
        flat = np.concatenate([np.ravel(x) for x in values]).astype(np.float64)
        return flat[:: self._every]

    def positions(self, sums: Sequence[int]) -> list[int]:
        """Return the places of some sums among these numbers; sums are flattened and joined."""
        return [k // self._every for k in sums if k % self._every == 0]

    def of_all(
        self, states: Sequence[tuple[Sequence[np.ndarray], Sequence[np.ndarray]]]
    ) -> NDArray[np.float64]:
        """Evaluate these numbers at several states, records and parameters, shape (m, k).

        At once, if all operations are known to allow that: it takes little longer than one state.
        """
        if len(states) == 1 or self._at_several is None:
            return np.array([self(*state) for state in states])
        inputs = [np.stack(x) for x in zip(*([*r, *p] for r, p in states), strict=True)]
        with np.errstate(all="ignore"):
            values = self._at_several(*inputs)
        flat = np.concatenate([x.reshape((len(states), -1)) for x in values], axis=1)
        return flat[:, :: self._every].astype(np.float64)

    @cached_property
    def _at_one(self) -> Callable[..., list[np.ndarray]]:
        return self._reading.in_python(self._graphs)

    @cached_property
    def _at_several(self) -> Callable[..., list[np.ndarray]] | None:
        several = {x: x.type.clone(shape=(None, *x.type.shape))(x.name) for x in self._inputs}
        try:
            graphs = vectorize_graph(localise_checks(self._graphs, self._inputs), several)
        except NotImplementedError:
            return None
        return compile_in_python(self._reading.model, list(several.values()), graphs)


def _size(x: TensorVariable) -> int:
    return prod(length or 1 for length in x.type.shape)
