"""Shared data of a model of counts."""

from collections.abc import Mapping
from typing import Protocol

import numpy as np
from pytensor.compile.sharedvalue import SharedVariable
from pytensor.graph.basic import Variable
from pytensor.tensor.variable import TensorVariable

from pymc_dapper.steps.data import Reading, SharedData


class ReadingOfCounts(Reading, Protocol):
    """What was read of how a model sees counts."""

    @property
    def rvs(self) -> list[TensorVariable]:
        """The random variables of the counts."""

    @property
    def frozen(self) -> Mapping[Variable, np.ndarray]:
        """Data that the linear structure was read from, with the values they had."""


class CountData(SharedData):
    """Values of the shared data that what was compiled for counts depends on."""

    _reading: ReadingOfCounts

    def __init__(self, reading: ReadingOfCounts, step: str = "CountStep"):
        names = ", ".join(f"'{rv.name}'" for rv in reading.rvs)
        super().__init__(reading, f"the {step} for the counts {names}")
        self._name = step

    def read(self) -> list[SharedVariable]:
        """Take over the present values, and return the data that changed.

        Raises
        ------
        ValueError
            As :meth:`SharedData.read`, and if data changed from which it was read which cells a
            statistic adds up.
        """
        changed = super().read()
        for shared, before in self._reading.frozen.items():
            if not np.array_equal(shared.get_value(borrow=True), before):
                raise ValueError(
                    f"the data '{shared.name}' say which counts are added up, and have changed "
                    f"since the {self._name} was built: build a new {self._name}"
                )
        return changed
