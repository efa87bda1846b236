"""Random rounding of counts to multiples of a base."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from pymc_dapper.checks import real_numbers, shown, whole_number
from pymc_dapper.mechanisms.count_law import CountLaw, read_law
from pymc_dapper.mechanisms.perturbed_counts import PerturbedCounts

LARGEST_BASE = 200
"""With more rows or columns, tables aren't cached with compiled code."""


@dataclass(frozen=True, eq=False, repr=False)
class RandomRounding(PerturbedCounts):
    """Counts rounded up or down at random, to multiples of a base.

    Multiples stay as they are. Other counts go to the multiple above with a probability that makes
    rounding unbiased: with base 3, a count of 4 is published as 3 with probability 2/3 and as 6
    with probability 1/3. Cells are rounded independently.

    Attributes
    ----------
    base : int
        The base, 2 or more: 3 in New Zealand's tables, 5 in Canada's.
    probabilities : array_like, shape (base - 1,), optional
        Probability of rounding up for remainders 1, ..., base - 1; by default remainder / base.

    Raises
    ------
    TypeError, ValueError
        If the base isn't a whole number from 2 to 200, or the probabilities are invalid.

    Notes
    -----
    Rounding to the nearest multiple, which isn't random, is a rule of publication:
    :meth:`~.PublishedByRules.rounded`.

    References
    ----------
    Nargundkar, M. S. and Saveland, W. (1972). Random rounding to prevent statistical disclosures.
    Proceedings of the Social Statistics Section, American Statistical Association, 382-385.

    Examples
    --------
    >>> rounding = RandomRounding(3)
    >>> rounding
    RandomRounding(base=3, no privacy budget)
    >>> float(np.exp(rounding.logp(6, 4).eval()).round(4))
    0.3333
    """

    base: int
    probabilities: ArrayLike | None = None

    def _read_law(self) -> CountLaw:
        base = whole_number(self.base, "base", at_least=2)
        object.__setattr__(self, "base", base)
        if base > LARGEST_BASE:
            raise ValueError(f"base must be at most {LARGEST_BASE}, got {base}")
        remainder = np.arange(1, base)
        up = remainder / base
        if self.probabilities is not None:
            up = real_numbers(self.probabilities, "probabilities")
            if up.shape != (base - 1,) or not np.all((up >= 0) & (up <= 1)):
                raise ValueError(
                    f"probabilities must be from 0 to 1, one for each remainder 1 to {base - 1}, "
                    f"got {shown(self.probabilities)}"
                )
        differences = np.arange(1 - base, base)
        rows = np.zeros((base, len(differences)))
        rows[0, base - 1] = 1
        rows[remainder, base - 1 + base - remainder] = up
        rows[remainder, base - 1 - remainder] += 1 - up
        return read_law(rows, differences=differences, repeats=base)
