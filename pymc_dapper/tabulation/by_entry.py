"""Records that depend on others, integrated out entry by entry, given these.

Of a class z and answers x to questions, the sum over x of p(x | z) and the law of what was answered
is a factor of z. z can be integrated out, or counted, after that: variables are eliminated from the
last one on. So there are as many terms as values of each, and not of all together.
"""

from collections.abc import Sequence
from functools import reduce
from math import prod

import numpy as np
import pytensor.tensor as pt
from pymc import Model, logp
from pytensor.graph import ancestors
from pytensor.tensor.variable import TensorVariable

from pymc_dapper.graphs.checks import checks_of_records
from pymc_dapper.graphs.rebuild import inline_symbolic_ops
from pymc_dapper.records.reading.finite import Prior, are_by_entry, conditional_law
from pymc_dapper.tabulation.errors import TabulationError
from pymc_dapper.tabulation.reading import ReadInTerms, TableReading, few_values
from pymc_dapper.tabulation.rows import DistinctRows


def last_of(rvs: Sequence[TensorVariable]) -> TensorVariable | None:
    """Return a record variable that depends on others, and on which none of them depends."""
    for rv in reversed(rvs):
        others = set(rvs) - {rv}
        depends = not others.isdisjoint(ancestors(rv.owner.inputs))
        if depends and all(rv not in ancestors(x.owner.inputs) for x in others):
            return rv
    return None


def read_by_entry(model: Model, rv: TensorVariable) -> TableReading:
    """Read records of which each entry is seen by its own answers alone.

    Raises
    ------
    TabulationError
        If entries are combined, or if something else depends on them.
    """
    read = ReadInTerms(model, [rv], by_entry=True)
    values, [record] = few_values(rv), read.records
    if values is None or None in read.shape:
        raise TabulationError(f"'{rv.name}': not of few values, or of unknown shape")
    answers = {}
    for x in (*model.basic_RVs, *model.potentials, *model.deterministics):
        if x is rv or rv not in ancestors([x]):
            continue
        if x in model.free_RVs or x in model.deterministics:
            raise TabulationError(f"'{x.name}' depends on '{rv.name}'")
        factor = x if x in model.potentials else logp(x, model.rvs_to_values[x])
        [answers[x.name]] = inline_symbolic_ops(read([factor]))
    if not answers or not are_by_entry(list(answers.values()), record):
        raise TabulationError(f"entries of '{rv.name}' aren't seen each by itself")
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
