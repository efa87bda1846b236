"""Shared data of a model of counts."""

import numpy as np
from pytensor.compile.sharedvalue import SharedVariable

from pymc_dapper.counts.reading.model import CountReading
from pymc_dapper.steps.data import SharedData


class CountData(SharedData):
    """Values of the shared data that a compiled sweep over counts depends on."""

    _reading: CountReading

    def __init__(self, reading: CountReading):
        names = ", ".join(f"'{rv.name}'" for rv in reading.rvs)
        super().__init__(reading, f"the CountStep for the counts {names}")

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
                    "since the CountStep was built: build a new CountStep"
                )
        return changed
