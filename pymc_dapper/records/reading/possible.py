"""Which values of records have a positive prior density.

Records are proposed by drawing from their prior, one variable after another. A variable's
parameters may depend on another record variable and be invalid there: the draw is then meaningless,
and PyMC's density is zero.
"""

from collections.abc import Sequence
from functools import reduce
from typing import NamedTuple

import pytensor.tensor as pt
from pymc.distributions.custom import CustomDistRV, CustomSymbolicDistRV
from pytensor.graph import Op, ancestors
from pytensor.tensor.random.basic import CategoricalRV, DirichletRV
from pytensor.tensor.variable import TensorVariable

from pymc_dapper.graphs.bounds import ANY_NUMBER, Bounds, always_true, bounds_of
from pymc_dapper.graphs.checks import checks_of_records, localise_checks
from pymc_dapper.graphs.errors import NotAdditiveError, UnknownOperationError
from pymc_dapper.graphs.prior import all_entries
from pymc_dapper.graphs.products import lookups_of
from pymc_dapper.graphs.rebuild import inline_symbolic_ops
from pymc_dapper.graphs.support import bounds_by_support
from pymc_dapper.graphs.view import ModelView
from pymc_dapper.records.reading.axis import tied
from pymc_dapper.records.reading.factors import RecordWalk
from pymc_dapper.records.reading.finite import table_of_probabilities
from pymc_dapper.records.reading.roles import Rows


class Possible(NamedTuple):
    """Which proposed values of records are valid."""

    whole: TensorVariable | None
    """Bool, shape (n,): whether a record's values are possible; None if all proposals are."""
    parameters: dict[TensorVariable, TensorVariable]
    """For random variables of records: whether each record's parameters are valid. Variables whose
    parameters are always valid are left out."""


def read_possible(
    view: ModelView,
    rvs: Sequence[TensorVariable],
    records: Sequence[TensorVariable],
    log_priors: Sequence[TensorVariable],
) -> Possible:
    """Return which values of records may be accepted, in terms of ``records``.

    ``records`` are the values of ``rvs``. ``log_priors`` are the log-densities of ``rvs``, or
    nothing if they aren't known. A check of parameters that can't be split by record is refused.
    """
    known = {x: bounds_of_record(rv) for rv, x in zip(rvs, records, strict=True)}
    conditions: list[TensorVariable] = []
    for rv, record in zip(rvs, records, strict=True):
        inputs = [x for x in rv.owner.inputs if isinstance(x, TensorVariable)]
        parameters = inline_symbolic_ops(view.at_values(inputs))
        dependent = [x for x in parameters if not set(records).isdisjoint(ancestors([x]))]
        bounds = [bounds_of(x, known) for x in dependent]
        are_numbers = all(each is not None and each.finite for each in bounds)
        transformed = view.model.rvs_to_transforms[rv] is not None
        if transformed or (rv.dtype.startswith("float") and not are_numbers):
            conditions.append(all_entries(pt.isfinite(record)))
    parameters_of: dict[TensorVariable, TensorVariable] = {}
    for rv, record in zip(rvs, records, strict=True):
        if _is_drawn_by_products(view, rv, record):
            parameters_of[rv] = pt.ge(record, 0)
            conditions.append(parameters_of[rv])
    checked = rvs if view.model.check_bounds and log_priors else []
    for rv, log_prior in zip(checked, inline_symbolic_ops(log_priors), strict=False):
        if rv in parameters_of:
            continue
        if is_users_own(rv.owner.op):
            [density] = localise_checks([log_prior], records)
            finite = _of_each_record(pt.isfinite(density), records)
            conditions += [] if finite is None else [finite]
            continue
        table = table_of_probabilities(rv)
        if table is not None and isinstance(getattr(table.owner, "op", None), DirichletRV):
            continue  # each of its rows sums to one
        valid = []
        for condition in checks_of_records(log_prior, records):
            if always_true(condition, known):
                continue
            of_each = _of_each_record(condition, records)
            if of_each is None:
                raise tied(rv, "a check of its parameters", "it isn't one of single records")
            valid.append(of_each)
        if valid:
            parameters_of[rv] = reduce(pt.and_, valid)
            conditions.append(parameters_of[rv])
    whole = reduce(pt.and_, conditions) if conditions else None
    return Possible(whole, parameters_of)


def _is_drawn_by_products(view: ModelView, rv: TensorVariable, record: TensorVariable) -> bool:
    """Whether a category is drawn by products of tables: -1 where they aren't probabilities."""
    if not isinstance(rv.owner.op, CategoricalRV):
        return False
    [p] = view.at_values(rv.owner.op.dist_params(rv.owner))
    return bool(lookups_of(p, record.type.shape))


def bounds_of_record(rv: TensorVariable) -> Bounds:
    """Bounds of a record's value: a finite number, transformed or not."""
    return ANY_NUMBER if rv.dtype.startswith("float") else bounds_by_support(rv)


def is_users_own(op: Op) -> bool:
    """Whether a distribution's density was written separately from its draws."""
    return isinstance(op, CustomDistRV) or (
        isinstance(op, CustomSymbolicDistRV) and not op.inline_logprob
    )


def _of_each_record(
    condition: TensorVariable, records: Sequence[TensorVariable]
) -> TensorVariable | None:
    """Whether all entries of a record meet a condition; None if it can't be split by record."""
    try:
        role, followed = RecordWalk(records).follow(condition)
    except (NotAdditiveError, UnknownOperationError):
        return None
    if not isinstance(role, Rows) or role.records is not None:
        return None
    return all_entries(pt.moveaxis(followed, role.axis, 0))
