"""How a sweep over a model's records goes: what decides on proposals, and how rows are made.

The rows are what records contribute to the sums. All of it follows from how the model was read, so
that compiling has nothing left to choose.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from pytensor.tensor.variable import TensorVariable

from pymc_dapper.records.reading.contributions import RECORDS_IN_BLOCK, RowMaker, read_rows
from pymc_dapper.records.reading.entrywise import EntrywiseDensity, read_entrywise
from pymc_dapper.records.reading.factors import AdditiveFactor, Factor, FullFactor, sums_of


@dataclass(frozen=True)
class ByEntries:
    """Terms of the log-density of which each sees one entry of a sum."""

    density: EntrywiseDensity
    rows: RowMaker
    """How contributions to the sums are made."""


@dataclass(frozen=True)
class BySums:
    """The log-density as a whole, as a function of all sums."""

    rows: RowMaker
    """How contributions to the sums are made."""


@dataclass(frozen=True)
class ByFullEvaluation:
    """The log-density as the model has it, from all records."""


@dataclass(frozen=True)
class EachByItself:
    """What each record adds to the log-density, on all at once: they don't interact."""


@dataclass(frozen=True)
class NothingToDecide:
    """Proposals are drawn from the records' conditional distribution: none is refused."""


Plan = ByEntries | BySums | ByFullEvaluation | EachByItself | NothingToDecide
"""What decides on the proposals of a sweep, beside the separable factors that they don't heed."""


def read_plan(
    records: Sequence[TensorVariable],
    factors: Sequence[Factor],
    possible_values: np.ndarray | None,
    *,
    proposes_conditionally: bool,
    records_in_block: int = RECORDS_IN_BLOCK,
) -> Plan:
    """Plan the sweep over a model's records.

    Where these have few values, ``possible_values`` are all of them, shape (k, number of record
    variables). Proposals may heed the separable factors. Contributions are made for so many records
    at a time, where each has its own.
    """
    if any(isinstance(factor, FullFactor) for factor in factors):
        return ByFullEvaluation()
    additive = [factor for factor in factors if isinstance(factor, AdditiveFactor)]
    if not additive:
        return NothingToDecide() if proposes_conditionally else EachByItself()
    rows = read_rows(records, sums_of(additive), possible_values, records_in_block)
    density = read_entrywise(additive)
    return BySums(rows) if density is None else ByEntries(density, rows)
