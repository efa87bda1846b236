"""A description of a reading in words."""

from collections.abc import Sequence

import numpy as np
from pytensor.graph import Apply, Variable, ancestors
from pytensor.printing import pprint
from pytensor.tensor.random.basic import BernoulliRV, CategoricalRV
from pytensor.tensor.shape import SpecifyShape
from pytensor.tensor.variable import TensorVariable

from pymc_dapper.graphs.naming import counted
from pymc_dapper.graphs.rebuild import rebuild, with_inputs
from pymc_dapper.html import aligned
from pymc_dapper.records.reading.contributions import RowMaker, RowsAtOnce, RowsByBlock
from pymc_dapper.records.reading.exchanges import Exchange
from pymc_dapper.records.reading.factors import AdditiveFactor, Factor, FullFactor
from pymc_dapper.records.reading.model import ModelReading
from pymc_dapper.records.reading.orders import ByOrder
from pymc_dapper.records.reading.plan import ByEntries, ByFullEvaluation, BySums, EachByItself, Plan
from pymc_dapper.records.reading.ranks import ByRanks
from pymc_dapper.records.reading.rows_by_cell import RowsByCell

MAX_FORMULA = 100


def describe_reading(reading: ModelReading, exchange: Exchange | None = None) -> str:
    """Describe how a model's log-density depends on the records, in several lines.

    The records and their proposals, a table of the factors, the sums, exactly known sums, what
    decides on proposals, and the cost of a sweep.
    """
    records = zip(reading.record_names, reading.records, strict=True)
    lines = [
        f"{reading.n_records} records, proposed {_proposal(reading)}:",
        *aligned([(f"  {name}", _shape(x.type.shape), x.dtype) for name, x in records]),
        "Factors that the records enter, their prior aside:",
        *aligned([(f"  {x.name}", *_row(x, reading.plan)) for x in reading.factors]),
        *_sums(reading),
        *_known(exchange),
        *_plan(reading.plan),
        f"A sweep costs {_cost(reading)}.",
    ]
    return "\n".join(lines)


def summarise_reading(reading: ModelReading) -> str:
    """Describe in one line how a model's log-density depends on the records."""
    names = ", ".join(reading.record_names)
    factors = ", ".join(f"{x.name} ({_kind(x, reading.plan)})" for x in reading.factors)
    return f"{reading.n_records} records of {names}; {factors}"


def _proposal(reading: ModelReading) -> str:
    if not reading.proposes_conditionally:
        return "from their prior given the parameters"
    if reading.near:
        return "from their prior, and near present values, by this times the separable factors"
    return (
        "by an exact draw from their prior times the separable factors, over all values they can "
        "take"
    )


def _kind(factor: Factor, plan: Plan) -> str:
    match factor:
        case AdditiveFactor():
            return "function of sums"
        case FullFactor():
            return "order statistics" if isinstance(plan, ByOrder) else "full evaluation"
    return "separable"


def _row(factor: Factor, plan: Plan) -> tuple[str, str]:
    kind = _kind(factor, plan)
    match factor:
        case AdditiveFactor():
            sizes = ", ".join(_shape(sum_.total.type.shape) for sum_ in factor.sums)
            return kind, f"g(sums of shape {sizes}) = {_formula(factor)}"
        case FullFactor():
            return kind, factor.reason
    return kind, "one value per record"


def _formula(factor: AdditiveFactor) -> str:
    """Write the factor as a function of its sums, named S1, S2, ..."""
    names = {}
    for k, sum_ in enumerate(factor.sums, start=1):
        names[sum_.total] = sum_.total.type(name=f"S{k}" if len(factor.sums) > 1 else "S")
    [graph] = rebuild([factor.log_density], names)
    return written(graph)


def written(graph: TensorVariable) -> str:
    """Write a graph as a formula, without operations that only concern shapes.

    A long formula is cut off.
    """

    def replace_node(node: Apply, inputs: list[Variable]) -> Sequence[Variable]:
        return inputs[:1] if isinstance(node.op, SpecifyShape) else with_inputs(node, inputs)

    [graph] = rebuild([graph], replace_node=replace_node)
    formula = " ".join(str(pprint(graph)).split())
    return formula if len(formula) <= MAX_FORMULA else formula[: MAX_FORMULA - 3] + "..."


def _sums(reading: ModelReading) -> list[str]:
    sums = reading.plan.sums if isinstance(reading.plan, ByOrder) else reading.sums
    if not sums or reading.evaluated_whole:
        return []
    rows = [(f"  {_shape(sum_.total.type.shape)}", written(sum_.contributions)) for sum_ in sums]
    return ["Cached sums over the records, with their terms:", *aligned(rows)]


def _known(exchange: Exchange | None) -> list[str]:
    if exchange is None:
        return []
    names = exchange.known.factors
    totals = [(f"  {name}", counted(names.count(name), "total")) for name in dict.fromkeys(names)]
    groups = counted(len(np.unique(exchange.groups[exchange.groups >= 0])), "group")
    return [
        "Known exactly, and kept by exchanges between two records:",
        *aligned(totals),
        f"  {counted(exchange.n_pairs, 'exchange')} after each sweep, within {groups} of records",
    ]


def _plan(plan: Plan) -> list[str]:
    """Say what decides on proposals, and how contributions to the sums are made."""
    match plan:
        case ByEntries(rows=rows):
            return [_decided("the entries of the sums that it changes"), _added(rows)]
        case BySums(rows=rows):
            return [_decided("the functions of all sums"), _added(rows)]
        case ByRanks(columns=columns):
            return [_decided(f"which of {len(columns.T)} intervals between candidates it lies in")]
        case ByOrder(ranks=ranks, sums=sums, rows=rows):
            by = counted(len(ranks), "order statistic")
            if not sums:
                return [_decided(by)]
            return [_decided(f"{by} and the functions of all sums"), _added(rows)]
        case ByFullEvaluation():
            return [_decided("an evaluation from all records")]
        case EachByItself():
            return [_decided("what its record adds to the log-density")]
    return ["No proposal is refused."]


def _decided(by: str) -> str:
    return f"Each proposal is decided on by {by}."


def _added(rows: RowMaker) -> str:
    match rows:
        case RowsByCell(starts=starts):
            of = "a table" if len(starts) == 1 else f"each of {len(starts)} tables"
            how = f"one in a cell of {of}, looked up by its values"
        case RowsByBlock():
            how = f"computed for {rows.records_in_block} records at a time"
        case RowsAtOnce():
            how = "computed for all records at once"
    return f"What a record adds to the sums is {how}."


def _cost(reading: ModelReading) -> str:
    n = reading.n_records
    if reading.evaluated_whole:
        names = ", ".join(f"'{factor.name}'" for factor in reading.full_factors)
        return f"{n} evaluations of {names} from all {n} records: it grows with the square of n"
    if reading.additive_factors or reading.full_factors:
        of = "of sums" if reading.additive_factors else "of order statistics"
        return f"at most {n} evaluations of the functions {of}; it grows linearly with n"
    return "one pass over the records, all at once: they don't interact"


def _shape(shape: tuple[int | None, ...]) -> str:
    inside = ", ".join("?" if size is None else str(size) for size in shape)
    return f"({inside},)" if len(shape) == 1 else f"({inside})"


def of_people(reading: ModelReading) -> list[str]:
    """List records with a value for each of many people: all but the cells of a table."""
    by_entry = [x.as_written for x in reading.factors if not isinstance(x, AdditiveFactor)]
    seen, pairs = set(ancestors(by_entry)), zip(reading.record_names, reading.records, strict=True)
    return [
        name for name, record in pairs if record not in seen or not _is_count(reading.model[name])
    ]


def _is_count(rv: TensorVariable) -> bool:
    whole = np.dtype(rv.dtype).kind in "iu"
    return whole and not isinstance(rv.owner.op, BernoulliRV | CategoricalRV)
