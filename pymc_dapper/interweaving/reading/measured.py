"""Records of which something public is measured with an error: their law given it.

A record x ~ Normal(mu, tau) of which w ~ Normal(a + b x, s) is observed is normal given w. With the
noise of this law held fixed, the records are as good as integrated out: parameters move against the
law of w, whose error may be a parameter, too. With the noise of the records' prior held fixed, all
w together would veto moves.

Laws with another shape, such as of Student's t, are taken as normal ones with their location and
scale. Any law is as good as another for exactness: its log-density is taken off the factors, which
all count.
"""

from collections.abc import Iterable, Mapping, Sequence

import pymc as pm
import pytensor.tensor as pt
from pytensor.graph import ancestors
from pytensor.tensor.random.basic import CauchyRV, LaplaceRV, LogisticRV, NormalRV, StudentTRV
from pytensor.tensor.variable import TensorVariable

from pymc_dapper.conjugacy.children import Child
from pymc_dapper.conjugacy.gaussian import Residual, entrywise_normal, read_residuals
from pymc_dapper.graphs.errors import NotConjugateError
from pymc_dapper.graphs.rebuild import inline_symbolic_ops
from pymc_dapper.graphs.view import ModelView

ENDS_WITH_LOCATION_AND_SCALE = NormalRV, StudentTRV, LaplaceRV, LogisticRV, CauchyRV
"""What the parameters of these laws do."""

type Laws = Mapping[TensorVariable, Sequence[TensorVariable]]
"""Mean and standard deviation of each entry, by the random variables of the records."""


def laws_given_measurements(
    view: ModelView, records: Sequence[TensorVariable], numbers: Iterable[TensorVariable] = ()
) -> Laws:
    """Find the records that are measured, and their laws in terms of value variables.

    Takes random variables, and value variables of numbers of records. A law depends on no number,
    and only on records that come before it in the model.
    """
    model, laws = view.model, {}
    later = [rv for rv in model.free_RVs if rv in records]
    while later:
        rv, *later = later
        value = view.values[model.rvs_to_values[rv]]
        if value.type.ndim == 0 or model.rvs_to_transforms[rv] is not None:
            continue
        after = {view.values[x] for x in (*(model.rvs_to_values[rv] for rv in later), *numbers)}
        measurements = [
            found
            for observed in model.observed_RVs
            for found in _read(view, observed, value)
            if found.entries is not None and after.isdisjoint(ancestors([found.mean, found.spread]))
        ]
        if measurements and (prior := _read(view, rv, value)):
            laws[rv] = entrywise_normal([*prior, *measurements], value)
    return laws


def _read(view: ModelView, rv: TensorVariable, value: TensorVariable) -> list[Residual]:
    """Read a variable as normal, with a mean that is linear in a record; empty if it isn't."""
    op = rv.owner.op
    if not isinstance(op, ENDS_WITH_LOCATION_AND_SCALE):
        return []
    of_rv, *law = inline_symbolic_ops(view.at_values([rv, *op.dist_params(rv.owner)[-2:]]))
    try:
        return read_residuals([Child(rv.name, pm.Normal.rv_op, of_rv, tuple(law))], [value])
    except NotConjugateError:
        return []


def log_law_of(
    view: ModelView, laws: Laws, records: Sequence[TensorVariable]
) -> TensorVariable | None:
    """Log-density of those records that have a law, up to a constant; None if none has."""
    terms = []
    for rv in (rv for rv in records if rv in laws):
        x, (mean, sd) = view.values[view.model.rvs_to_values[rv]], laws[rv]
        terms.append((-0.5 * ((x - mean) / sd) ** 2 - pt.log(sd)).sum())
    return pt.add(*terms) if terms else None
