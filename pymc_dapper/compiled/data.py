"""Shared data of a model, handed to compiled functions as arguments."""

import numpy as np

from pymc_dapper.reading.model import ModelReading


class SharedData:
    """Values of the shared data (``pm.Data``) that a compiled function depends on.

    Parameters
    ----------
    reading : ModelReading
        The reading that the function was compiled from.

    Attributes
    ----------
    values : list of ndarray
        The values when they were last read, in the order of the reading's ``data``.
    """

    def __init__(self, reading: ModelReading):
        self._reading = reading
        self.values = self._present()
        self._shapes = [value.shape for value in self.values]

    def read(self) -> None:
        """Take over the present values.

        Raises
        ------
        ValueError
            If the length of a dim or the shape of the data isn't what the function was compiled
            for, or if a mechanism can't have released the data.
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
        self.values = values

    def _present(self) -> list[np.ndarray]:
        return [np.array(x.get_value(borrow=True), order="C") for x in self._reading.data]

    def _check_dims(self) -> None:
        lengths = self._reading.model.dim_lengths
        for name, old in self._reading.dim_lengths.items():
            new = int(lengths[name].eval())
            if new != old:
                raise self._changed(f"the dim '{name}' had length {old}", f"length {new}")

    def _changed(self, before: str, now: str) -> ValueError:
        records = ", ".join(f"'{x.name}'" for x in self._reading.records)
        return ValueError(
            f"{before} when the DapperStep for the records {records} was built, and has {now} now. "
            "A step can take over new values, but not another number of records or another size "
            "of anything: build a new DapperStep"
        )
