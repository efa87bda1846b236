"""Sufficient statistics: sums over records that factors depend on, and other log-densities."""

from collections.abc import Sequence
from math import prod

import numpy as np

from pymc_dapper.records.reading.description import written
from pymc_dapper.records.reading.factors import AdditiveFactor
from pymc_dapper.records.reading.model import ModelReading

MOST_NUMBERS = 1_000
"""If there are more numbers, evenly spaced ones of them are taken."""


class SufficientStatistics:
    """The numbers through which factors depend on the records: sums, or whole log-densities.

    Attributes
    ----------
    names : list of str
        Name of each number.
    """

    def __init__(self, reading: ModelReading):
        graphs = [sum_.total for sum_ in reading.sums]
        names: list[str] = []
        for sum_ in reading.sums:
            formula = written(sum_.contributions)
            factor = next(x.name for x in reading.additive_factors if sum_ in x.sums)
            name = f"what '{factor}' sees" if formula.endswith("...") else f"the sum of {formula}"
            n = prod(length or 1 for length in sum_.total.type.shape)
            names += [name] if n == 1 else [f"entry {k} of {name}" for k in range(n)]
        others = [x for x in reading.factors if not isinstance(x, AdditiveFactor)]
        graphs += [factor.as_written for factor in others]
        names += [f"the log-density of '{factor.name}'" for factor in others]
        self._every = -(-len(names) // MOST_NUMBERS)
        self.names = names[:: self._every]
        self._evaluate = reading.in_python(graphs)

    def __call__(
        self, records: Sequence[np.ndarray], parameters: Sequence[np.ndarray]
    ) -> np.ndarray:
        """Evaluate these numbers, shape (k,), in Python."""
        with np.errstate(all="ignore"):
            values = self._evaluate(*records, *parameters)
        flat = np.concatenate([np.ravel(x) for x in values]).astype(np.float64)
        return flat[:: self._every]

    def positions(self, sums: Sequence[int]) -> list[int]:
        """Return the places of some sums among these numbers; sums are flattened and joined."""
        return [k // self._every for k in sums if k % self._every == 0]
