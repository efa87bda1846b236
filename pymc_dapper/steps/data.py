"""Shared data of a model, handed to compiled functions as arguments."""

import numpy as np
from pytensor.compile.sharedvalue import SharedVariable

from pymc_dapper.graphs.view import Reading, complete, dim_lengths


class SharedData:
    """Values of the shared data (``pm.Data``) that a compiled function depends on.

    ``reading`` is what it was compiled from, and ``step`` its name in messages.
    """

    def __init__(self, reading: Reading, step: str = "the step"):
        self._reading = reading
        self._step = step
        self.values = self._present()  # in the order of the reading's ``data``
        self._shapes = [value.shape for value in self.values]

    def read(self) -> list[SharedVariable]:
        """Take over the present values; return the data that changed.

        Refused are lengths of dims or shapes of data other than the compiled ones, missing values,
        and data that a mechanism can't have released.
        """
        self._check_dims()
        values = self._present()
        for shared, old, new in zip(self._reading.data, self._shapes, values, strict=True):
            if new.shape != old:
                raise self._changed(f"the data '{shared.name}' had shape {old}", f"{new.shape}")
        # A mechanism knows which releases are possible.
        for variable in (*self._reading.model.potentials, *self._reading.model.observed_RVs):
            check = getattr(variable.tag, "check_data", None)
            if check is not None:
                check()
        changed = [
            shared
            for shared, old, new in zip(self._reading.data, self.values, values, strict=True)
            if not np.array_equal(old, new, equal_nan=True)
        ]
        self.values = values
        return changed

    def _present(self) -> list[np.ndarray]:
        return [np.array(complete(x), order="C") for x in self._reading.data]

    def _check_dims(self) -> None:
        lengths = dim_lengths(self._reading.model)
        for name, old in self._reading.view.dim_lengths.items():
            new = lengths[name]
            if new != old:
                raise self._changed(f"the dim '{name}' had length {old}", f"length {new}")

    def _changed(self, before: str, now: str) -> ValueError:
        return ValueError(
            f"{before} when {self._step} was built, and has {now} now. A step can take over new "
            "values, but not another number of records or another size of anything: build a new "
            "step"
        )
