"""Models of records, written as models of their counts.

Records that depend on others are marginalised first, entry by entry, given these. Suppose that z
is a class, x are true answers given z, and y released answers. Then sum_x p(x | z) p(y | x) is a
factor of z alone, and z can be marginalised or counted next. Variables are eliminated from the
last one on. So the number of terms is the sum of the variables' numbers of values, not their
product.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import reduce
from math import prod

import numpy as np
import pytensor.tensor as pt
from pymc import Model, logp
from pytensor.graph import Variable, ancestors
from pytensor.tensor.variable import TensorVariable

from pymc_dapper.context import model_to_read
from pymc_dapper.graphs.checks import checks_of_records
from pymc_dapper.graphs.dependence import records_seen
from pymc_dapper.graphs.errors import FAILURES
from pymc_dapper.graphs.rebuild import inline_symbolic_ops
from pymc_dapper.records.reading.finite import Prior, are_by_entry, conditional_law
from pymc_dapper.steps.progress import LOGGER
from pymc_dapper.steps.variables import check_given, record_values
from pymc_dapper.tabulation.cliques import all_earlier
from pymc_dapper.tabulation.errors import TabulationError
from pymc_dapper.tabulation.fewer import few_records, with_few_records
from pymc_dapper.tabulation.reading import (
    NOT_FEW_VALUES,
    ReadInTerms,
    TableReading,
    check_sizes,
    few_values,
    read_table,
)
from pymc_dapper.tabulation.rows import DistinctRows
from pymc_dapper.tabulation.self_check import are_all_possible, check_table, is_evaluated_soon
from pymc_dapper.tabulation.writer import write_table


def last_of(rvs: Sequence[TensorVariable]) -> TensorVariable | None:
    """Return a record variable that depends on others, and on which none of them depends."""
    for rv in reversed(rvs):
        others = set(rvs) - {rv}
        depends = not others.isdisjoint(ancestors(rv.owner.inputs))
        if depends and all(rv not in ancestors(x.owner.inputs) for x in others):
            return rv
    return None


def read_by_entry(model: Model, rv: TensorVariable) -> TableReading:
    """Read records whose entries each have answers of their own, and no other factors.

    Raises
    ------
    TabulationError
        If entries are combined, or if something else depends on them.
    """
    read = ReadInTerms(model, [rv], by_entry=True)
    values, [record] = few_values(rv), read.records
    if values is None or None in read.shape:
        raise TabulationError(f"'{rv.name}': it has many possible values, or an unknown shape")
    answers = {}
    for x in (*model.basic_RVs, *model.potentials, *model.deterministics):
        if x is rv or rv not in ancestors([x]):
            continue
        if x in model.free_RVs or x in model.deterministics:
            raise TabulationError(f"'{x.name}' depends on '{rv.name}'")
        factor = x if x in model.potentials else logp(x, model.rvs_to_values[x])
        [answers[x.name]] = inline_symbolic_ops(read([factor]))
    if not answers or not are_by_entry(list(answers.values()), record):
        raise TabulationError(f"entries of '{rv.name}' don't have factors of their own")
    parameters = tuple(inline_symbolic_ops(read(rv.owner.op.dist_params(rv.owner))))
    [density] = inline_symbolic_ops(read([logp(rv, rv)]))
    # PyMC's checks of the parameters, which may hold for other values of what these depend on.
    checks = checks_of_records(density, list(read.placeholders.values()))
    prior = Prior(rv.owner.op, parameters, density)
    of_values, valid = np.array(values)[:, None], reduce(pt.and_, checks) if checks else None
    law = conditional_law([record], [prior], list(answers.values()), of_values, valid)
    n = prod(read.shape)
    return TableReading(
        model=model,
        rvs=(rv,),
        records=(record,),
        supports=(values,),
        chances=(None,),
        probabilities=(),
        read=read,
        seen={},
        answers=answers,
        given=((),),
        rows=DistinctRows(np.arange(n), np.ones(n, dtype=np.int64), np.arange(n)),
        by_entry=law.log_scale + pt.log(pt.add(*law.weights)),
    )


def tabulate(
    model: Model | None = None,
    records: Variable | Sequence[Variable] | None = None,
) -> Model:
    r"""Write a model of records as a model of counts, with the same posterior of all parameters.

    If records have few possible values, it is enough to count how many have each. The new model has
    a table of these counts instead of the records. The table has a row for each distinct row of the
    records' public data: covariates, indices of groups, answers. The time of a draw then doesn't
    depend on the number of records.

    Parameters
    ----------
    model : Model, optional
        The model. Taken from the context if not given.
    records : variable or sequence of variables, optional
        The latent records, each a vector of a Bernoulli, Categorical, Binomial, BetaBinomial or
        DiscreteUniform distribution. By default, the free variables in a mechanism's statistic.
        Groups of variables that nothing links have a table each. Each entry of a matrix is a record
        by itself.

    Returns
    -------
    Model
        A model with the same parameters, data, Potentials, observed variables and Deterministics. A
        single variable of zeros and ones is counted as Binomial ``{name}_count``, the number of
        ones. Others are counted as Multinomial ``{name}_counts``. Each of several variables is
        counted with the earlier ones that its distribution depends on, or that something sees
        together with it, as ``{names}_counts``. An observation of each record, such as a randomised
        answer, becomes a Potential of the same name. If the observation depends on parameters, the
        Potential is its marginal likelihood, and the table has the probabilities of values given
        the observation, so that parameters can move together with the table. If nothing else
        depends on the records, they are marginalised and there is no table: the Potential is the
        log-likelihood of the numbers of answers. Records that depend on other records are
        marginalised, too, if only their own answers depend on them; the others are counted after
        that. Covariates that are ``pm.Data`` of real numbers stay data, with an entry for each row;
        integers determine the rows, and become constants.

    Raises
    ------
    TabulationError
        If the records can't be counted: a ``ReadingError`` with the reason. Also if the two models
        have different densities at random values. With many records, both are compared with few of
        them.

    Notes
    -----
    With :math:`n_r` records in row r and :math:`N_{rv}` of them with value v, the records' prior is
    :math:`\prod_{rv} p_{rv}^{N_{rv}}`, and :math:`\prod_r n_r! / \prod_v N_{rv}!` assignments of
    values to records have this table. Their product is the multinomial distribution. The variables
    on which a variable is conditioned lie in one earlier table, whose margin is the n of its own
    table (running intersection; the graph of variables that are counted together is triangulated).

    The cost doesn't depend on the number of records if they don't differ. If arrays have an entry
    for each record, such as covariates, their distinct rows are found once.

    Examples
    --------
    >>> with pm.Model() as model:
    ...     p = pm.Dirichlet("p", np.ones(4))
    ...     record = pm.Categorical("record", p=p, shape=330_000_000)
    ...     table = pmd.statistics.counts(record, 4)
    ...     pmd.GaussianMechanism(100).potential("privacy", table, released=released)
    >>> pmd.tabulate(model)["record_counts"]
    """
    model = model_to_read(model)
    for group in apart(model, find_records(model, records)):
        steps = write_in_turn(model, [model[rv.name] for rv in group], check_sizes)
        for step in steps:
            compare(*step)
        model = steps[-1][1]
    return model


def write_in_turn(
    model: Model, records: Sequence[TensorVariable], check: Callable[[TableReading], None]
) -> list[tuple[TableReading, Model]]:
    """Marginalise records given others, where that is possible; then write a table of the rest.

    ``check`` may refuse the table of the rest before it is written, by a ``ReadingError``.

    Returns
    -------
    list of (TableReading, Model)
        How a model was read, and what was written.
    """
    at_once, names, done = model, [rv.name for rv in records], []
    while (last := last_of([model[name] for name in names])) is not None:
        try:
            reading = read_by_entry(model, last)
        except TabulationError:
            break
        model = write_table(reading)
        names.remove(last.name)
        done.append((reading, model))
    try:
        return [*done, _read_and_written(model, [model[name] for name in names], check)]
    except TabulationError:
        if not done:
            raise
    return [_read_and_written(at_once, records, check)]


def _read_and_written(
    model: Model, records: Sequence[TensorVariable], check: Callable[[TableReading], None]
) -> tuple[TableReading, Model]:
    """Write linked tables; or a single one, if some are impossible.

    A step may not know moves of linked tables around these, such as those that a known total rules
    out.
    """
    reading = read_table(model, records)
    check(reading)
    written = write_table(reading)
    if len(reading.tables) > 1 and not are_all_possible(reading, written):
        reading = replace(reading, given=all_earlier(len(reading.rvs)))
        check_sizes(reading)
        check(reading)
        written = write_table(reading)
    return reading, written


def compare(reading: TableReading, written: Model) -> None:
    """Compare a model of counts with that of the records.

    Of too many records to be evaluated, a model of the same form with few of them is compared.

    Raises
    ------
    TabulationError
        If they disagree.
    """
    if is_evaluated_soon(reading):
        check_table(reading, written)
        return
    try:
        people, each = reading.shape[0], prod(reading.shape[1:])
        few = with_few_records(reading.model, people, few_records(reading.rows) // each)
        rvs = [few[rv.name] for rv in reading.rvs]
        of_few = read_table(few, rvs) if reading.by_entry is None else read_by_entry(few, *rvs)
        of_few = replace(of_few, given=reading.given)
        written_of_few = write_table(of_few)
    except FAILURES as error:  # of a graph that depends on the number of records
        _tell_not_compared(reading, str(error))
        return
    if not is_evaluated_soon(of_few):
        _tell_not_compared(reading, "it has other large arrays, too")
        return
    try:
        check_table(of_few, written_of_few)
    except TabulationError as error:
        if error.__cause__ is None:  # they disagree; else one can't be evaluated
            raise
        _tell_not_compared(reading, str(error))


def _tell_not_compared(reading: TableReading, why: str) -> None:
    LOGGER.warning(
        "The table of counts of %s wasn't compared with the records: there are too many. A model "
        "of the same form with few records can't be compared either: %s. To be sure, build such a "
        "model and pass it to pmd.tabulate",
        reading.names,
        why,
    )


def find_records(
    model: Model, records: Variable | Sequence[Variable] | None
) -> list[TensorVariable]:
    """Find the records if they aren't given, without using their values."""
    if records is not None:
        check_given(records, "tabulate was given", "the latent records")
        return [model.values_to_rvs[x] for x in record_values(records, model)]
    seen = records_seen(model)
    if not seen:
        raise TabulationError(
            "no latent records were found: no Potential, and no release added by a mechanism's "
            "observe(), depends on a free variable. Pass the records"
        )
    found = [rv for rv in seen if few_values(rv) is not None]
    if not found:
        raise TabulationError(f"{', '.join(f"'{rv.name}'" for rv in seen)}: {NOT_FEW_VALUES}")
    # Records on which the mechanism depends through others only.
    above = {x for rv in found for x in ancestors(rv.owner.inputs)}
    lengths = {rv.type.shape[:1] for rv in found}
    return [
        rv
        for rv in model.free_RVs
        if rv in found
        or (rv in above and few_values(rv) is not None and rv.type.shape[:1] in lengths)
    ]


def apart(model: Model, records: Sequence[TensorVariable]) -> list[list[TensorVariable]]:
    """Group records by what links them: a factor that depends on both, or one's distribution."""
    groups = [[rv] for rv in records]
    for x in (*model.basic_RVs, *model.potentials, *model.deterministics):
        seen = {x, *ancestors(x.owner.inputs, blockers=model.basic_RVs)}
        linked = [group for group in groups if not seen.isdisjoint(group)]
        groups = [group for group in groups if group not in linked]
        groups += [[rv for rv in records if any(rv in group for group in linked)]] if linked else []
    return groups
