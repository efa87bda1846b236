"""Which variables can be records, and whether records are independent in their prior."""

from collections.abc import Mapping, Sequence

import numpy as np
from pymc import Model
from pytensor.tensor.type import TensorType
from pytensor.tensor.variable import TensorVariable

from pymc_dapper.graphs.errors import NotAdditiveError, ReadingError, UnknownOperationError
from pymc_dapper.graphs.rebuild import inline_symbolic_ops
from pymc_dapper.graphs.view import ModelView
from pymc_dapper.records.reading.factors import RecordWalk
from pymc_dapper.records.reading.roles import Fixed, Rows


def check_records(
    model: Model, rvs: Sequence[TensorVariable], point: Mapping[str, np.ndarray]
) -> None:
    """Refuse variables without a record axis in common; the point is looked at for shapes."""
    lengths = {}
    for rv in rvs:
        shape = point[model.rvs_to_values[rv].name].shape
        if rv.type.ndim == 0:
            raise ReadingError(
                f"'{rv.name}' is a scalar and has no record axis. A record variable's first axis "
                "runs over the records, as in shape=(n, ...); if it is a parameter, leave it to "
                "another step"
            )
        if rv.type.ndim == rv.owner.op.ndim_supp:
            raise ReadingError(
                f"'{rv.name}' has no record axis: its prior is one draw that ties all its "
                "entries together. Records are independent given the parameters; if it is a "
                "parameter, such as a random walk of rates, leave it out: pmd.sample() alone finds "
                "the records, and a step for everything else"
            )
        if np.dtype(rv.dtype).kind not in "biuf":
            raise ReadingError(f"'{rv.name}' has dtype {rv.dtype}: records must be real numbers")
        if shape[0] == 0:
            raise ReadingError(f"'{rv.name}' has no records: its first axis has length 0")
        lengths[rv.name] = shape[0]
    if len(set(lengths.values())) > 1:
        listed = ", ".join(f"'{name}' has {length}" for name, length in lengths.items())
        raise ReadingError(
            f"the records of one step must be equally many, one of each variable: {listed}. Give "
            "variables that describe other people a DapperStep of their own"
        )


def check_independence(
    view: ModelView, rvs: Sequence[TensorVariable], records: Sequence[TensorVariable]
) -> None:
    """Check that a record's prior depends on no other record, given the parameters.

    ``records`` are the variables for the values of ``rvs``.
    """
    for rv in rvs:
        batch_ndim = rv.type.ndim - rv.owner.op.ndim_supp
        transform = view.model.rvs_to_transforms[rv]
        # The record as a function of its value variable.
        parts = [] if transform is None else [(rv, 0, f"transform {transform}")]
        for parameter, core_ndim in _parameters(rv):
            name = f"parameter '{parameter.name}'" if parameter.name else "a parameter"
            parts.append((parameter, parameter.type.ndim - core_ndim - batch_ndim, name))
        for part, axis, what in parts:
            [graph] = inline_symbolic_ops(view.at_values([part]))
            if (why := depends_on_others(graph, axis, records)) is not None:
                raise tied(rv, what, why)


def _parameters(rv: TensorVariable) -> list[tuple[TensorVariable, int]]:
    op, node = rv.owner.op, rv.owner
    if op.ndims_params is None:
        # A distribution made of others, whose inputs aren't marked as parameters.
        parameters = [x for x in node.inputs if isinstance(x.type, TensorType)]
        core_ndims = [0] * len(parameters)
    else:
        parameters, core_ndims = op.dist_params(node), op.ndims_params
    return [(x, n) for x, n in zip(parameters, core_ndims, strict=True) if x.owner is not None]


def depends_on_others(
    graph: TensorVariable, axis: int, records: Sequence[TensorVariable]
) -> str | None:
    """Say how slices along an axis depend on other records than the one each is for, if they do."""
    try:
        role, _ = RecordWalk(records).follow(graph)
    except (NotAdditiveError, UnknownOperationError) as error:
        return str(error)
    own = isinstance(role, Rows) and role.axis == axis and role.records is None
    if own or isinstance(role, Fixed):
        return None
    return "it depends on other records than the one it is for"


def tied(rv: TensorVariable, what: str, why: str) -> ReadingError:
    """Make the error for a prior that ties records together."""
    return ReadingError(
        f"the prior of '{rv.name}' ties records together ({what}: {why}). Records must be "
        "independent given the parameters, so that each can be proposed by itself"
    )
