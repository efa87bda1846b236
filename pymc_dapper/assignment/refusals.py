"""Refusals: releases that aren't known yet, and releases that depend on no free variable."""

from pymc import Model
from pytensor.graph import ancestors

from pymc_dapper.graphs.errors import ReadingError


def check_generated(model: Model) -> None:
    """Refuse releases that aren't known yet, unless the model continues with the noisy value."""
    for rv in model.free_RVs:
        mechanism = getattr(rv.tag, "mechanism", None)
        if mechanism is None:
            continue
        name = rv.name
        others = [x for x in (*model.basic_RVs, *model.potentials) if x is not rv]
        is_used = rv in ancestors([y for x in others for y in x.owner.inputs])
        if not is_used:
            raise ReadingError(
                f"'{name}' is a release that isn't known yet. Give it by "
                f"pm.observe(model, {{'{name}': released}}), which returns the model to sample. "
                "If other releases will never be known, "
                "pymc.model.transform.basic.prune_vars_detached_from_observed(model) removes "
                f"them. Draw '{name}' afterwards, by pm.sample_posterior_predictive"
            )
        rules = repr(getattr(mechanism, "publication", ""))
        if rules:
            raise ReadingError(
                f"'{name}' isn't known, and other variables depend on its published value, after "
                f"{rules.removeprefix('.')}. Generate the noisy value without these rules, and "
                "write in the model what the rules do to it"
            )


def why_no_records(model: Model) -> str:
    """Say why no release depends on a free variable."""
    releases = [(x, [x]) for x in model.potentials]
    releases += [(rv, rv.owner.inputs) for rv in model.observed_RVs if hasattr(rv.tag, "mechanism")]
    if not releases:
        return (
            "the model has no release of a mechanism. Add it, as in "
            'mechanism.potential("privacy", statistic, released=...). If an observed variable is '
            "the release, pass the records, as in sample(records=[x])"
        )
    for release, inputs in releases:
        known = set(ancestors(inputs)).intersection(model.observed_RVs) - {release}
        if known:
            [name, *_] = sorted(str(rv.name) for rv in known)
            return (
                f"'{release.name}' depends on '{name}', which is observed. A release adds nothing "
                f"about known records. If '{name}' is confidential, remove its observed=, and it "
                "is drawn"
            )
    return (
        "no Potential, and no release added by a mechanism's observe(), depends on a free "
        "variable. Let the statistic be a function of the records"
    )
