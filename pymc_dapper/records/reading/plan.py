"""The plan of a sweep over a model's records: what decides on proposals, and how rows are made.

Rows are the records' contributions to the sums. The plan follows from the reading, so compiling has
no choices left.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from pytensor.tensor.variable import TensorVariable

from pymc_dapper.records.reading.contributions import RowMaker, read_rows
from pymc_dapper.records.reading.entrywise import EntrywiseDensity, read_entrywise
from pymc_dapper.records.reading.factors import AdditiveFactor, Factor, FullFactor, sums_of
from pymc_dapper.records.reading.orders import ByOrder, read_orders
from pymc_dapper.records.reading.ranks import ByRanks, read_ranks
from pymc_dapper.records.reading.rows_by_cell import rows_by_cell


@dataclass(frozen=True)
class ByEntries:
    """The terms of the log-density, each of one entry of a sum."""

    density: EntrywiseDensity
    rows: RowMaker
    """How contributions to the sums are computed."""


@dataclass(frozen=True)
class BySums:
    """The log-density as a whole, as a function of all sums."""

    rows: RowMaker
    """How contributions to the sums are computed."""


@dataclass(frozen=True)
class ByFullEvaluation:
    """The log-density as the model computes it, from all records."""


@dataclass(frozen=True)
class EachByItself:
    """Each record's own log-density; all are decided on at once, since they don't interact."""


@dataclass(frozen=True)
class NothingToDecide:
    """Nothing: proposals keep the records' conditional distribution, and none is refused."""


Plan = ByEntries | BySums | ByRanks | ByOrder | ByFullEvaluation | EachByItself | NothingToDecide
"""What decides on proposals, beside separable factors that the proposals don't account for."""


def read_plan(
    records: Sequence[TensorVariable],
    factors: Sequence[Factor],
    *,
    proposes_conditionally: bool,
    supports: Sequence[range | None] = (),
) -> Plan:
    """Plan the sweep over a model's records.

    Proposals may account for the separable factors. ``supports`` has the values of each record
    variable, if they are known.
    """
    if any(isinstance(factor, FullFactor) for factor in factors):
        return read_orders(records, factors) or ByFullEvaluation()
    additive = [factor for factor in factors if isinstance(factor, AdditiveFactor)]
    if not additive:
        return NothingToDecide() if proposes_conditionally else EachByItself()
    ranks = read_ranks(records, additive)
    if ranks is not None:
        return ranks
    density, sums = read_entrywise(additive), sums_of(additive)
    if density is None:
        return BySums(read_rows(records, sums))
    return ByEntries(density, rows_by_cell(records, supports, sums) or read_rows(records, sums))
