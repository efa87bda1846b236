"""Answers: labelled draws of a quantity, with summaries of them."""

from collections.abc import Callable, Hashable, Mapping
from functools import cached_property, partial
from os import PathLike
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import xarray as xr
from numpy.lib.mixins import NDArrayOperatorsMixin

from pymc_dapper.answers.figure import draw_intervals
from pymc_dapper.answers.summary import Summary, frame_of, interval_of, moved, quantiles
from pymc_dapper.answers.table import BY_CELL, DRAW, numbers_by_cell
from pymc_dapper.checks import function, known, shown

NOT_COMPARED = (
    "The sensitivity to the prior wasn't computed: it would take as long as the draws did. To "
    "compare, draw again with prior='smooth' or prior='flat'."
)


class Provenance(NamedTuple):
    """What is said beside draws: their method, their prior and their source."""

    method: str
    prior: str
    source: Mapping[Hashable, Hashable]
    """By release: the call of ``posterior`` that made the draws."""


class Answer(NDArrayOperatorsMixin):
    """Posterior draws of true values, given a release, with labels.

    `Release.posterior` returns the true values themselves. Sums, differences, ratios and
    comparisons of answers are answers, too. They are computed draw by draw, so their intervals are
    joint.

    Attributes
    ----------
    draws : xarray.DataArray
        The draws, along the dim ``draw``, which comes last.
    released : xarray.DataArray or None
        The released values of the same cells; nan if suppressed.
    method : str
        How the draws were made.
    prior : str
        The prior of the draws.

    Examples
    --------
    >>> cases = release.posterior(random_seed=1)
    >>> (cases["A"] + cases["B"]).interval(0.9)
    >>> (cases["A"] / cases["B"]).median()
    >>> (cases.sel(year=2025) > cases.sel(year=2024)).probability()
    """

    def __init__(
        self,
        draws: xr.DataArray,
        provenance: Provenance,
        *,
        released: xr.DataArray | None = None,
        other: Callable[[], "Answer | None"] | None = None,
    ):
        self.draws, self.released = draws, released
        self.method, self.prior, self._source = provenance
        self._make_other = other

    @cached_property
    def other(self) -> "Answer | None":
        """The answer under another prior. None if that isn't cheap, or if this is that answer."""
        return None if self._make_other is None else self._make_other()

    def __repr__(self) -> str:
        dims = [f"{dim}: {n}" for dim, n in self.draws.sizes.items() if dim != DRAW]
        name = "" if self.draws.name is None else f" '{self.draws.name}'"
        of = f" by {', '.join(dims)}" if dims else ""
        return (
            f"<Answer{name}{of}: {self.draws.sizes[DRAW]} draws>\n"
            f"Prior: {self.prior}.\nMethod: {self.method}."
        )

    # Answers made from answers.

    def map(self, function_of_draws: Callable[..., xr.DataArray], *others: Any) -> "Answer":
        """Apply a function of DataArrays to the draws, and to those of other answers.

        Parameters
        ----------
        function_of_draws : callable
            ``function_of_draws(draws, *draws_of_others) -> DataArray``, which keeps the dim
            ``draw``.
        *others : Answer or number
            Further arguments.

        Returns
        -------
        Answer

        Raises
        ------
        TypeError, ValueError
            If the function changes the dim ``draw``, or if answers come from different draws of one
            release.
        """
        function(function_of_draws, "function_of_draws", "f(draws)")
        return _derived(function_of_draws, [self, *others])

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        """Apply a NumPy function draw by draw; all arithmetic comes here."""
        taken = Answer | xr.DataArray | BY_CELL | np.generic | int | float
        if method != "__call__" or options or not all(isinstance(x, taken) for x in inputs):
            return NotImplemented
        dims, shape = self._dims, self.draws.shape[:-1]
        return _derived(partial(_by_draw, ufunc), [numbers_by_cell(x, dims, shape) for x in inputs])

    def _kept(self, function_of_array: Callable[[xr.DataArray], xr.DataArray]) -> "Answer":
        """Apply a choice of cells to draws and released values."""
        made = self.map(function_of_array)
        if self.released is not None:
            made.released = function_of_array(self.released)
        return made

    def sel(self, **labels: Any) -> "Answer":
        """Choose cells by their labels, as ``DataArray.sel`` does."""
        self._check_dims(labels)
        for dim, label in labels.items():
            if isinstance(label, str) and label not in self.draws[dim].to_index():
                raise KeyError(f"'{dim}' has no label {label!r}")
        return self._kept(lambda x: x.sel(labels))

    def isel(self, **numbers: Any) -> "Answer":
        """Choose cells by their numbers, as ``DataArray.isel`` does."""
        self._check_dims(numbers)
        return self._kept(lambda x: x.isel(numbers))

    def __getitem__(self, labels: Any) -> "Answer":
        """Choose cells by labels, one for each dim in their order."""
        dims = self._dims
        given = labels if isinstance(labels, tuple) else (labels,)
        if len(given) > len(dims):
            raise KeyError(f"there are {len(given)} labels, where the dims are {dims}")
        return self.sel(**dict(zip(dims, given, strict=False)))

    def __bool__(self) -> bool:
        raise TypeError("an Answer isn't true or false: a comparison has a probability()")

    def __iter__(self) -> Any:
        raise TypeError("an Answer can't be iterated over: choose cells by sel(...), or see .draws")

    def sum(self, dim: Any = None) -> "Answer":
        """Add up, over one dim or several; over all of them if none is named."""
        return self._reduced("sum", dim)

    def mean(self, dim: Any = None) -> "Answer":
        """Average over one dim or several; over all of them if none is named."""
        return self._reduced("mean", dim)

    def max(self, dim: Any = None) -> "Answer":
        """Take the largest along one dim or several, in each draw."""
        return self._reduced("max", dim)

    def min(self, dim: Any = None) -> "Answer":
        """Take the smallest along one dim or several, in each draw."""
        return self._reduced("min", dim)

    def groupby(self, group: str) -> "Grouped":
        """Group cells by a dim, or by a coordinate along one, as ``DataArray.groupby`` does."""
        known([group], dict.fromkeys([*self._dims, *self.draws.coords]), "groupby: there is no")
        return Grouped(self, group)

    def assign_coords(self, **coords: Any) -> "Answer":
        """Add labels, such as groups along a dim, as ``DataArray.assign_coords`` does."""
        return self._kept(lambda x: x.assign_coords(coords))

    def rank(self, dim: str) -> "Answer":
        """Rank cells along a dim: 1 is the largest; equal cells share a rank."""
        from scipy.stats import rankdata

        known([dim], self._dims, "there is no dim")

        def ranks(x: xr.DataArray) -> xr.DataArray:
            axis = x.get_axis_num(dim)
            return x.copy(data=rankdata(-x.values, method="min", axis=axis).astype(np.int64))

        return self.map(ranks)

    # Summaries of the draws.

    def probability(self) -> xr.DataArray:
        """Posterior probability that a comparison holds.

        Returns
        -------
        DataArray
            The probability of each cell.

        Raises
        ------
        TypeError
            If this isn't a comparison.
        """
        if self.draws.dtype.kind != "b":
            raise TypeError(
                "probability() is of a comparison, such as (cases.sel(year=2025) > "
                "cases.sel(year=2024)).probability()"
            )
        return self.draws.mean(DRAW)

    def interval(self, probability: float = 0.9) -> xr.DataArray:
        """Equal-tailed interval.

        Parameters
        ----------
        probability : float
            Posterior probability that the interval, ends included, contains the truth.

        Returns
        -------
        DataArray
            Its first dim, ``end``, has ``lower`` and ``upper``.

        Raises
        ------
        TypeError, ValueError
            If this is a comparison; or if a draw is nan, such as a ratio of two zeros.
        """
        return interval_of(self.draws, probability)

    def median(self) -> xr.DataArray:
        """Median."""
        return quantiles(self.draws, [0.5])[0]

    def summary(self, probability: float = 0.9) -> Summary:
        """Tabulate released values, medians and intervals, and say whether the prior matters.

        Parameters
        ----------
        probability : float
            Of the intervals.

        Returns
        -------
        Summary
            Prints as a table. ``frame`` has it as a data frame. ``notes`` has the sentences below:
            the method, the prior, and how far intervals move under the other prior.
        """
        frame = self.to_frame(probability)
        notes = [f"Prior: {self.prior}.", f"Method: {self.method}."]
        if "lower" in frame:
            notes.insert(0, f"Intervals hold {100 * probability:g} %.")
            if self.other is not None:
                try:
                    notes.append(moved(frame, self.other.to_frame(probability), self.other.prior))
                except ValueError as error:
                    notes.append(f"Under the other prior ({self.other.prior}), {error}.")
            elif self._make_other is not None:
                notes.append(NOT_COMPARED)
        return Summary(frame, tuple(notes))

    def to_frame(self, probability: float = 0.9) -> pd.DataFrame:
        """Return a data frame: a row for each cell, its labels as the index.

        Columns are ``released`` (if the cells were), ``median``, ``lower`` and ``upper``; for a
        comparison, ``probability``.
        """
        return frame_of(self.draws, self.released, probability)

    def to_csv(self, path: str | PathLike[str], probability: float = 0.9) -> None:
        """Write the rows of :meth:`to_frame` to a CSV file."""
        self.to_frame(probability).to_csv(path, index=bool(self._dims))

    def plot(self, probability: float = 0.9, *, ax: Any = None) -> Any:
        """Draw intervals and medians, and released values beside them.

        Parameters
        ----------
        probability : float
            Of the intervals.
        ax : matplotlib.axes.Axes, optional
            Axes to draw on; by default a new figure.

        Returns
        -------
        matplotlib.axes.Axes
        """
        name = "true value" if self.draws.name is None else str(self.draws.name)
        return draw_intervals(self.to_frame(probability), name, probability, ax)

    @property
    def _dims(self) -> list[str]:
        return [str(dim) for dim in self.draws.dims if dim != DRAW]

    def _check_dims(self, given: Mapping[str, Any]) -> None:
        known([dim for dim in given if dim not in self.draws.coords], self._dims, "there is no dim")

    def _reduced(self, method: str, dim: Any) -> "Answer":
        """Apply a method of DataArrays over one dim or several; over all of them if None."""
        over = [dim] if isinstance(dim, str) else self._dims if dim is None else list(dim)
        known(over, self._dims, "there is no dim")
        return self.map(lambda x: getattr(x, method)(over))


class Grouped:
    """Cells in groups: `sum`, `mean`, `max` and `min` return an `Answer` with an entry for each."""

    def __init__(self, answer: Answer, group: str):
        self._answer, self._group = answer, group

    def __repr__(self) -> str:
        return f"<cells grouped by '{self._group}'>"

    def _by(self, method: str) -> Answer:
        return self._answer.map(lambda x: getattr(x.groupby(self._group), method)())

    def sum(self) -> Answer:
        """Add up within groups."""
        return self._by("sum")

    def mean(self) -> Answer:
        """Average within groups."""
        return self._by("mean")

    def max(self) -> Answer:
        """Take the largest of each group, in each draw."""
        return self._by("max")

    def min(self) -> Answer:
        """Take the smallest of each group, in each draw."""
        return self._by("min")


def _by_draw(ufunc: Any, *draws: Any) -> Any:
    """Apply a NumPy function; products of counts are real numbers where 64 bits can't hold them."""
    if ufunc in (np.multiply, np.power, np.square):
        wide = ufunc(*(1.0 * x for x in draws))
        if not ((abs(wide) < 2**53) & (wide % 1 == 0)).all():
            return wide
    return ufunc(*draws)


def _derived(function_of_draws: Callable[..., Any], inputs: list[Any]) -> Answer:
    """Compute an answer from other answers and numbers, draw by draw."""
    answers = [each for each in inputs if isinstance(each, Answer)]
    provenance, n = _joined(answers), answers[0].draws.sizes[DRAW]
    given = [each.draws if isinstance(each, Answer) else each for each in inputs]
    made = _aligned(function_of_draws, given)
    if not isinstance(made, xr.DataArray) or made.sizes.get(DRAW) != n:
        raise ValueError(
            f"function_of_draws must return a DataArray with the dim '{DRAW}' as it was, got "
            f"{shown(made)}"
        )

    def other() -> Answer | None:
        others = [each.other if isinstance(each, Answer) else each for each in inputs]
        if any(each is None for each in others):
            return None
        return _derived(function_of_draws, others)

    has_other = all(each._make_other is not None for each in answers)
    return Answer(made.transpose(..., DRAW), provenance, other=other if has_other else None)


def _joined(answers: list[Answer]) -> Provenance:
    """Join the methods, priors and sources of answers."""
    sources: dict[Hashable, Hashable] = {}
    for each in answers:
        for release, call in each._source.items():
            if sources.setdefault(release, call) != call:
                raise ValueError(
                    "these are two sets of draws of the same release, and arithmetic would treat "
                    "them as independent. Take both answers from one call of posterior()"
                )
    sizes = {each.draws.sizes[DRAW] for each in answers}
    if len(sizes) > 1:
        raise ValueError(f"answers have different numbers of draws: {sorted(sizes)}")
    methods = dict.fromkeys(each.method for each in answers)
    priors = dict.fromkeys(each.prior for each in answers)
    return Provenance("; ".join(methods), "; ".join(priors), sources)


def _aligned(function_of_draws: Callable[..., Any], given: list[Any]) -> Any:
    with xr.set_options(arithmetic_join="exact"), np.errstate(divide="ignore", invalid="ignore"):
        try:
            return function_of_draws(*given)
        except ValueError as error:
            if "exact" not in str(error):
                raise
            raise ValueError(
                "these answers have different labels along a dim: choose the same of both by "
                f"sel(...) ({str(error).splitlines()[0]})"
            ) from None
