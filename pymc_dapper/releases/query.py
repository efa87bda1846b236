"""One query of a release: released values, and the mechanism that made them."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from pytensor.tensor.variable import TensorVariable

from pymc_dapper.checks import is_a, known, text
from pymc_dapper.context import the_model
from pymc_dapper.mechanisms import Mechanism
from pymc_dapper.releases.labels import add_to_model, as_coords, as_dims


@dataclass(frozen=True, eq=False, repr=False)
class Query:
    """The released values of one statistic, with their mechanism.

    Parameters
    ----------
    name : str
        Name of the query, and of its variable in the model.
    values : array_like
        The released values. Entries that the mechanism's rules suppressed are masked or nan.
    mechanism : Mechanism
        The mechanism that released the values.
    dims : str or sequence of str, optional
        A name for each axis of the values.
    coords : mapping of str to sequence, optional
        Labels along dims.

    Attributes
    ----------
    values : ndarray or MaskedArray
        The released values; suppressed ones are masked.
    coords : dict of str to tuple
        Labels of the dims that have labels.

    Raises
    ------
    TypeError, ValueError
        If the mechanism can't have released the values, or if dims or coords don't fit them; the
        message begins with the query's name.
    """

    name: str
    values: Any
    mechanism: Mechanism
    dims: Any = None
    coords: Any = None

    def __post_init__(self) -> None:
        name = text(self.name, "name")
        rule = f"'{name}': mechanism must be a Mechanism, such as LaplaceMechanism(2)"
        is_a(self.mechanism, Mechanism, rule)
        released = self.mechanism.as_released(name, self.values)
        hidden = np.isneginf(released) if self.mechanism.suppresses else np.zeros(1, bool)
        values = released
        if hidden.any():
            values = np.ma.masked_array(np.where(hidden, np.nan, released), hidden)
        dims = as_dims(name, self.dims, released.ndim)
        coords = as_coords(f"'{name}':", self.coords)
        known(coords, dims, f"'{name}': coords: there is no dim")
        for dim, length in zip(dims, released.shape, strict=True):
            if dim in coords and len(coords[dim]) != length:
                raise ValueError(
                    f"'{name}': the released values have length {length} along '{dim}', which has "
                    f"{len(coords[dim])} labels"
                )
        for key, value in (("values", values), ("dims", dims), ("coords", coords)):
            object.__setattr__(self, key, value)

    def __repr__(self) -> str:
        dims = f" by {', '.join(map(str, self.dims))}" if any(self.dims) else ""
        return f"<Query '{self.name}'{dims}: shape {np.shape(self.values)}, {self.mechanism}>"

    def potential(self, statistic: Any, *, name: str | None = None) -> TensorVariable:
        """Add the likelihood of the released values to the model in context, as a ``pm.Potential``.

        Dims and labels that the model doesn't have are added to it.

        Parameters
        ----------
        statistic : tensor_like
            The confidential statistic, a function of latent records or counts.
        name : str, optional
            Name of the Potential, by default the query's.

        Returns
        -------
        TensorVariable
            The Potential.

        Raises
        ------
        TypeError, ValueError
            As of ``Mechanism.potential``; or if the model has the dims in another order or with
            other labels. A statistic that is one of the model's variables is checked in the same
            way.
        """
        return self._add("potential", statistic, name)

    def observe(self, statistic: Any, *, name: str | None = None) -> TensorVariable:
        """Add the released values to the model in context as an observed variable.

        Predictive draws then give releases. Arguments and errors are those of :meth:`potential`.

        Returns
        -------
        TensorVariable
            The observed variable.
        """
        return self._add("observe", statistic, name)

    def _add(self, method: str, statistic: Any, name: str | None) -> TensorVariable:
        name = self.name if name is None else text(name, "name")
        model = the_model()
        add_to_model(name, model, self.dims, np.shape(self.values), self.coords)
        dims = self.dims if any(self.dims) else None
        return getattr(self.mechanism, method)(name, statistic, released=self.values, dims=dims)
