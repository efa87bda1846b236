"""Exactly known sums over records: if they don't hold, the log-density is minus infinity.

Sums over records are treated like counts, so the walk through a table's factors finds the
equations.
"""

from collections.abc import Sequence

from pymc_dapper.graphs.terms.equations import KnownTotals, compares, requires
from pymc_dapper.graphs.terms.walk import CountWalk
from pymc_dapper.records.reading.factors import AdditiveFactor, RecordSum


def find_known_totals(
    factors: Sequence[AdditiveFactor], sums: Sequence[RecordSum]
) -> KnownTotals | None:
    """Find all equations on ``sums`` that factors state; None if there are none.

    Conditions that aren't equations are left out.
    """
    totals = [sum_.total for sum_ in sums]
    if any(None in total.type.shape for total in totals):
        return None
    walk = CountWalk(totals, {}, at_least=True)
    stating = [x for x in factors if compares(totals, x.log_density)]
    found = [(x.name, rows) for x in stating for rows in requires(walk.follow(x.log_density))]
    return KnownTotals.of(found, found[0][1].matrix.shape[1]) if found else None
