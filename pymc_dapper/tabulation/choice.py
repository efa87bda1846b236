"""Whether records are sampled as a table of their counts."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from pymc import Model
from pytensor.graph import Variable, ancestors
from pytensor.tensor.random.basic import BernoulliRV, BetaRV, CategoricalRV, DirichletRV
from pytensor.tensor.variable import TensorVariable

from pymc_dapper.graphs.dependence import records_seen
from pymc_dapper.graphs.errors import FAILURES, ReadingError
from pymc_dapper.graphs.view import view_of
from pymc_dapper.steps.progress import LOGGER
from pymc_dapper.tabulation.errors import TabulationError
from pymc_dapper.tabulation.model import apart, compare, find_records, write_in_turn
from pymc_dapper.tabulation.reading import TableReading

RECORDS_PER_CELL = 150
"""A sweep over a table takes as long, for each cell, as a sweep over so many records."""
CONJUGATE_PER_CELL = 1
"""The same for people of several columns, categories with Dirichlet priors. Their counts mix far
better: a table given one margin, of which both were released, hardly moves person by person."""
CELLS_PER_RECORD = 16
"""Records are marginalised if no more terms than this are added up for each of them."""


@dataclass(frozen=True, eq=False)
class Table:
    """A model of counts that replaces a model of records."""

    model: Model
    counts: list[TensorVariable]
    """Its counts; none if the records are marginalised."""
    n: int
    """Number of records."""
    n_tables: int
    """Number of tables that aren't margins of others."""
    n_cells: int
    """The number of their cells."""
    names: str
    """The records, for messages."""
    factors: list[str]
    """Names of the factors that depend on the records."""
    of_people: list[str]
    """Free variables with an entry for each person, on which marginalised records depend."""


def tables_if_cheaper(
    model: Model, records: Variable | Sequence[Variable] | None, kept: Sequence[str]
) -> list[Table]:
    """Tabulate each group of people by :func:`table_if_cheaper`; the last model has all tables."""
    try:
        groups = apart(model, find_records(model, records))
    except FAILURES:  # there are none that can be counted; `tabulate` gives the reason
        return []
    tables = []
    for group in groups:
        table = table_if_cheaper(model, [model[rv.name] for rv in group], kept)
        if table is not None:
            tables.append(table)
            model = table.model
    return tables


def table_if_cheaper(
    model: Model, records: Variable | Sequence[Variable] | None, kept: Sequence[str]
) -> Table | None:
    """Tabulate a model's records if that takes fewer operations and keeps all results.

    The decision depends on the numbers of records and cells. None if the model's records can't be
    counted: they are then sampled, and errors are reported there.
    """
    try:
        rvs = find_records(model, records)
        if any(rv.name in kept for rv in rvs):
            return None
        steps = write_in_turn(model, rvs, _check_cheaper)
        readings, written = [each for each, _ in steps], steps[-1][1]
        reading = readings[-1]
        of_people = set().union(*map(_of_people, readings)) - {rv.name for rv in rvs}
        if not of_people.isdisjoint(x.name for x in records_seen(model)):
            return None  # they stay records, each with its own
        if not written.free_RVs:  # the records, marginalised, are all there is to sample
            return None
        try:
            for each in steps:
                compare(*each)
        except TabulationError as error:
            LOGGER.warning("Not sampled as a table, but record by record: %s", error)
            return None
    except ReadingError:  # refused with a reason, as most models are; `tabulate` gives it
        return None
    except FAILURES as error:  # of any operation: the model is then read by record
        LOGGER.info("The records aren't replaced by a table of counts: %s", error)
        return None
    except MemoryError:
        raise
    except Exception as error:
        error.add_note(
            "This happened while the records were written as a table, and is a fault of "
            "pymc_dapper's, or of a distribution of your own: please report the model. "
            "pmd.sample(tabulate=False) samples the records themselves"
        )
        raise
    counts = [rv for rv in written.free_RVs if hasattr(rv.tag, "in_place_of")]
    depend = {part.name for each in readings for part in each.seen.values()}
    depend = depend.union(*(each.answers for each in readings))
    factors = [x.name for x in (*model.observed_RVs, *model.potentials) if x.name in depend]
    beneath = [rv.name for rv in written.free_RVs if rv.name in of_people]
    names = ", ".join(f"'{rv.name}'" for rv in rvs)
    sizes = len(reading.tables), reading.n_cells
    return Table(written, counts, prod(reading.shape), *sizes, names, factors, beneath)


def _of_people(reading: TableReading) -> set[str]:
    """Name free variables with an entry for each person, on which the records depend."""
    beneath = set(ancestors([x for rv in reading.rvs for x in rv.owner.inputs]))
    of_model, view = reading.model.free_RVs, view_of(reading.model)
    free = [rv for rv in of_model if rv in beneath and rv not in reading.rvs]
    return {rv.name for rv in free if view.shape(rv)[:1] == reading.shape[:1]}


def _check_cheaper(reading: TableReading) -> None:
    """Refuse a table whose sweep takes longer, and counts with answers, which results keep."""
    categories = all(isinstance(rv.owner.op, CategoricalRV | BernoulliRV) for rv in reading.rvs)
    several = len(reading.rvs) > 1 and categories and reading.knows_answers
    conjugate = several and _have_dirichlet_priors(reading) and _are_all_seen(reading)
    cheaper = reading.n > (CONJUGATE_PER_CELL if conjugate else RECORDS_PER_CELL) * reading.n_cells
    if not reading.sums:
        cheaper = reading.n_cells <= CELLS_PER_RECORD * reading.n
    if not cheaper or (reading.answers and not categories):
        raise ReadingError(f"{reading.names}: sampled record by record")


def _have_dirichlet_priors(reading: TableReading) -> bool:
    """Whether the parameters of the records have Dirichlet priors, or some of them Beta ones."""
    free = set(reading.model.free_RVs)
    above = [x for rv in reading.rvs for x in ancestors(rv.owner.inputs, blockers=free)]
    given = free.intersection(above).difference(reading.rvs)
    priors = {type(x.owner.op) for x in given}
    return DirichletRV in priors and priors <= {DirichletRV, BetaRV}


def _are_all_seen(reading: TableReading) -> bool:
    """Whether all records are counted or observed: a latent class isn't, and mixes badly."""
    graphs = [*(x.contributions for x in reading.sums), *reading.answers.values()]
    return {k for x in graphs for k in reading.seen_by(x)} == set(range(len(reading.rvs)))
