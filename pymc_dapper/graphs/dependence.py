"""Which factors of the log-density depend on given value variables."""

from collections.abc import Sequence

from pymc import Model
from pytensor.graph import Variable, ancestors
from pytensor.tensor.variable import TensorVariable

from pymc_dapper.graphs.asked_once import log_densities


def dependent_factors(
    model: Model, values: Sequence[TensorVariable], *, jacobian: bool = True
) -> dict[str, TensorVariable]:
    """Find the factors of the log-density that depend on some value variables.

    Returns a dict by the name of the factor's variable. Factors aren't summed over their entries;
    with ``jacobian``, they include the log-Jacobian of transforms.
    """
    variables = [*model.basic_RVs, *model.potentials]
    factors = log_densities(model, variables, jacobian=jacobian)
    pairs = zip(variables, factors, strict=True)
    return {x.name: f for x, f in pairs if not set(values).isdisjoint(ancestors([f]))}


def answers_of_records(model: Model) -> list[TensorVariable]:
    """Find the Potentials of answers of records that are marginalised, or counted."""
    return [x for x in model.potentials if hasattr(x.tag, "of_answers")]


def records_seen(model: Model) -> list[TensorVariable]:
    """Find the free variables in a privacy mechanism's statistic: the records."""
    seen: set[Variable] = set().union(*seen_by_each(model))
    return [rv for rv in model.free_RVs if rv in seen]


def seen_by_each(model: Model) -> list[set[Variable]]:
    """Find the variables that each privacy mechanism sees.

    A Potential, or a release added by a mechanism's ``observe``, depends on them directly, not
    through the distributions of other variables. Variables on which only the noise scale depends
    are parameters. If records are marginalised or counted, the variables in the Potential of
    their answers are parameters, too, except the counts.
    """
    released = [x for x in model.observed_RVs if hasattr(x.tag, "check_data")]
    out = answers_of_records(model)
    found = []
    # In terms of random variables: their values may be transformed by parameters, as by bounds.
    for x in [*model.potentials, *released]:
        unknown = getattr(getattr(x.tag, "mechanism", None), "unknown", [])
        scales = set(ancestors(unknown, blockers=model.basic_RVs))
        if unknown:
            scales -= set(ancestors([x.tag.statistic], blockers=model.basic_RVs))
        graphs = x.owner.inputs if x in released else [x]
        variables = set(ancestors(graphs, blockers=model.basic_RVs)) - scales
        found.append({y for y in variables if x not in out or hasattr(y.tag, "in_place_of")})
    return found
