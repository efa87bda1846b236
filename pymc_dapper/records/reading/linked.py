"""Latent variables of each record besides a mechanism's: classes, abilities, true values."""

from collections.abc import Sequence

from pymc import Model
from pytensor.graph import ancestors
from pytensor.tensor.variable import TensorVariable

from pymc_dapper.graphs.view import view_of


def length(model: Model, rv: TensorVariable) -> int | None:
    """Return the length of a variable's first axis; None if it is one draw."""
    if rv.type.ndim == 0 or rv.type.ndim == rv.owner.op.ndim_supp:
        return None
    return view_of(model).shape(rv)[0]


def with_linked(model: Model, seen: Sequence[TensorVariable], n: int) -> list[TensorVariable]:
    """Add latent variables that are linked to the records, in the model's order.

    A free variable with an entry for each of the ``n`` records is linked if its distribution
    depends on a record variable, or the other way round. A continuous one stays a parameter if data
    are observed for each record given it: most proposals from the prior would be refused.
    """
    found = set(seen)
    observed = [x for x in model.observed_RVs if not hasattr(x.tag, "check_data")]
    while True:
        above = set(ancestors([x for rv in found for x in rv.owner.inputs]))
        more = {
            rv
            for rv in model.free_RVs
            if rv not in found
            and (rv in above or not found.isdisjoint(ancestors(rv.owner.inputs)))
            and length(model, rv) == n
            and not (rv.dtype.startswith("float") and _is_seen_by(rv, observed, model))
        }
        if not more:
            return [rv for rv in model.free_RVs if rv in found]
        found |= more


def _is_seen_by(rv: TensorVariable, observed: Sequence[TensorVariable], model: Model) -> bool:
    others = [x for x in model.free_RVs if x is not rv]
    return any(rv in ancestors(x.owner.inputs, blockers=others) for x in observed)
