"""Hierarchies: variables whose scale, such as the spread of groups, is itself a parameter."""

from collections.abc import Sequence
from typing import Any

from pymc import Model
from pytensor.graph import Op, Variable, ancestors
from pytensor.tensor.variable import TensorVariable

from pymc_dapper.interweaving.reading.families import RULES
from pymc_dapper.interweaving.reading.maps import NoRecordMapError, parameters_of, record_map
from pymc_dapper.interweaving.reading.series import SERIES

type Kinds = tuple[type[Op], ...]

GROUPS: Kinds = tuple(RULES)


def find_hierarchy(
    model: Model, parameters: Sequence[TensorVariable], kinds: Kinds = (*GROUPS, *SERIES)
) -> tuple[list[TensorVariable], list[TensorVariable]]:
    """Find the vectors whose scale depends on parameters, and the parameters of their laws.

    Such a vector is centred in the model. If data say little about it, chains get stuck where the
    scale is small, and NUTS diverges there. Moves with the vector's noise held fixed pass through.
    A parameter that is itself such a vector isn't moved. ``kinds`` says which laws are looked at.
    """

    def among(graphs: Sequence[Variable]) -> list[TensorVariable]:
        seen = set(ancestors(graphs, blockers=model.free_RVs))
        return [rv for rv in parameters if rv in seen]

    followers, movers = [], []
    for rv in parameters:
        op: Any = rv.owner.op
        if rv.type.ndim and isinstance(op, kinds):
            law = op.dist_params(rv.owner)
            if among(law if isinstance(op, SERIES) else law[-1:]):
                followers.append(rv)
                movers += among(law)
    return followers, [rv for rv in parameters if rv in movers and rv not in followers]


def has_map(rv: TensorVariable) -> bool:
    """Whether a variable can be written as a function of its law's parameters and of noise."""
    try:
        record_map(rv.owner.op, rv.owner, [True] * len(parameters_of(rv.owner)))
    except NoRecordMapError:
        return False
    return True


def find_without_map(
    model: Model, parameters: Sequence[TensorVariable], records: Sequence[TensorVariable]
) -> list[tuple[TensorVariable, list[TensorVariable], str]]:
    """Find the records that can't follow parameters of their law: each with these, and why."""
    found = []
    for rv in records:
        law = [set(ancestors([x], blockers=model.free_RVs)) for x in parameters_of(rv.owner)]
        movers = [x for x in parameters if any(x in seen for seen in law)]
        try:
            record_map(rv.owner.op, rv.owner, [not seen.isdisjoint(movers) for seen in law])
        except NoRecordMapError as error:
            found += [(rv, movers, str(error))] if movers else []
    return found
