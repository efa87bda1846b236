"""Transition mechanisms: any law of a published whole number, given the true count."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Self

from numpy.typing import ArrayLike

from pymc_dapper.checks import function, whole_number
from pymc_dapper.mechanisms.count_law import CountLaw, law_of_function, read_law
from pymc_dapper.mechanisms.perturbed_counts import PerturbedCounts


@dataclass(frozen=True, eq=False, repr=False)
class TransitionMechanism(PerturbedCounts):
    """Each cell is published as another whole number, by probabilities P(published | true).

    Use it for an office's own rule. Cells are independent, given the true counts. A square matrix
    on the categories of records, in place of counts, is randomised response with a confusion
    matrix; data swapping is an example.

    Attributes
    ----------
    probabilities : array_like, shape (rows, columns)
        Row n is for a true count of n, from 0 on. Each row adds up to one.
    published : array_like of int, shape (columns,), optional
        The published value of each column, by default 0, 1, 2, .... True counts beyond the last row
        are then impossible.
    differences : array_like of int, shape (columns,), optional
        In place of ``published``: the published value minus the true count.
    repeats : int, optional
        This number of last rows repeats for all larger counts; 1 repeats the last row. For
        ``differences`` only. Without it, released values that larger counts may have led to are
        refused.

    Raises
    ------
    TypeError, ValueError
        If an argument is of a wrong kind; if rows don't add up to one; if columns don't fit.

    Examples
    --------
    Counts of 1 and 2 are published as 0 or 3, all others unchanged:

    >>> rows = [[1, 0, 0, 0], [0.6, 0, 0, 0.4], [0.3, 0, 0, 0.7], [0, 0, 0, 1]]
    >>> small = TransitionMechanism(rows)
    >>> small
    TransitionMechanism(probabilities=<array of shape (4, 4)>, no privacy budget)
    """

    probabilities: ArrayLike
    published: ArrayLike | None = None
    differences: ArrayLike | None = None
    repeats: int | None = None

    @classmethod
    def from_function(cls, law: Callable[[int], Mapping[int, float]], *, largest: int) -> Self:
        """Make the mechanism from a function of the true count.

        Parameters
        ----------
        law : callable
            ``law(true) -> {published: probability}``.
        largest : int
            The largest true count; larger ones are impossible.

        Returns
        -------
        TransitionMechanism

        Raises
        ------
        TypeError, ValueError
            If the function returns something else, or probabilities that don't add up to one.

        Examples
        --------
        >>> halves = TransitionMechanism.from_function(
        ...     lambda n: {n - n % 2: 0.5, n + n % 2: 0.5} if n % 2 else {n: 1.0}, largest=50
        ... )
        """
        function(law, "law", "law(true) -> {published: probability}")
        largest = whole_number(largest, "largest", at_least=0)
        probabilities, published = law_of_function(law, largest)
        return cls(probabilities, published)

    def _read_law(self) -> CountLaw:
        return read_law(
            self.probabilities,
            published=self.published,
            differences=self.differences,
            repeats=self.repeats,
        )
