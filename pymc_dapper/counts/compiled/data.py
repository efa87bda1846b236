"""Shared data of a model of counts."""

import numpy as np
from pytensor.compile.sharedvalue import SharedVariable

from pymc_dapper.counts.reading.model import CountReading
from pymc_dapper.graphs.view import Reading
from pymc_dapper.steps.data import SharedData


class CountData(SharedData):
    """Values of the shared data on which compiled functions of counts depend.

    ``counts`` has the data from which the linear structure was read.
    """

    def __init__(self, reading: Reading, counts: CountReading, step: str = "CountStep"):
        names = ", ".join(f"'{rv.name}'" for rv in counts.rvs)
        super().__init__(reading, f"the {step} for the counts {names}")
        self._frozen, self._name = counts.frozen, step

    def read(self) -> list[SharedVariable]:
        """Update to the present values, and return the data that changed.

        Raises
        ------
        ValueError
            As :meth:`SharedData.read`; or if data changed that determine which cells a statistic
            adds up.
        """
        changed = super().read()
        for shared, before in self._frozen.items():
            if not np.array_equal(shared.get_value(borrow=True), before):
                raise ValueError(
                    f"the data '{shared.name}' say which counts are added up, and have changed "
                    f"since the {self._name} was built: build a new {self._name}"
                )
        return changed
