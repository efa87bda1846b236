"""Find the releases of a model: statistics with noise of a known law."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pytensor.tensor as pt
from pymc import Model
from pytensor.graph import Apply, Variable, ancestors
from pytensor.graph.traversal import io_toposort
from pytensor.scalar import AND, EQ, NEQ, OR, Cast, Invert, Sub, Switch
from pytensor.tensor.elemwise import CAReduce, DimShuffle, Elemwise
from pytensor.tensor.variable import TensorVariable

from pymc_dapper.graphs.errors import FAILURES
from pymc_dapper.graphs.evaluation import compile_in_python
from pymc_dapper.graphs.rebuild import dependent_variables, rebuild
from pymc_dapper.graphs.view import ModelView
from pymc_dapper.plausibility.noise_law import NoiseLaw


@dataclass(frozen=True)
class ModelRelease:
    """A release: a statistic to which noise of a known law was added, or none."""

    name: str
    """Name of the Potential or observed variable."""
    statistic: TensorVariable
    """The statistic before noise, in terms of the view's random variables."""
    lowest: np.ndarray
    highest: np.ndarray
    """Lower and upper limit of each noisy value. Both are the released value, unless it was
    clamped, suppressed or published by another rule."""
    noise: Callable[[np.ndarray], np.ndarray] | None
    """``noise(difference) -> ndarray``: the log-density of the noise, for each entry or as a
    sum. None if the statistic is known exactly."""

    @property
    def known(self) -> np.ndarray:
        """The noisy values; nan for those of which only a range is known."""
        return np.where(self.lowest == self.highest, self.lowest, np.nan)


def find_equalities(view: ModelView, values: Sequence[TensorVariable]) -> Iterator[ModelRelease]:
    """Find Potentials that set functions of latent variables equal to numbers, as invariants do."""
    model = view.model
    latent = {model.values_to_rvs[value] for value in values}
    for potential in model.potentials:
        for one, other in _compared(potential):
            on_latent = [not latent.isdisjoint(ancestors([x])) for x in (one, other)]
            statistic, known = (one, other) if on_latent[0] else (other, one)
            # As many numbers as the statistic has entries, or one number for several entries.
            single = zip(statistic.type.broadcastable, known.type.broadcastable, strict=True)
            fits = all(of_known or not of_statistic for of_statistic, of_known in single)
            if any(on_latent) and fits and set(ancestors([known])).isdisjoint(model.free_RVs):
                value = _function(model, [], known)()
                [statistic] = view([statistic])
                yield ModelRelease(potential.name, statistic, value, value, None)


def _compared(condition: Variable) -> Iterator[Sequence[Variable]]:
    """Find the pairs that a condition requires to be equal."""
    match condition.owner:
        case Apply(op=Elemwise(scalar_op=EQ() | NEQ()), inputs=pair):
            yield pair
        case Apply(op=Elemwise(scalar_op=AND() | OR() | Invert() | Cast()), inputs=parts):
            for x in parts:
                yield from _compared(x)
        case Apply(op=Elemwise(scalar_op=Switch()) | CAReduce() | DimShuffle(), inputs=[x, *_]):
            yield from _compared(x)


def find_releases(view: ModelView, values: Sequence[TensorVariable]) -> Iterator[ModelRelease]:
    """Find the releases of latent variables whose noise has a known law."""
    model = view.model
    forward = view.forward({x: x for x in model.free_RVs})
    as_random = dict(zip(view.values.values(), forward, strict=True))
    latent = set(view(model.values_to_rvs[value] for value in values))
    of_mechanisms: dict[tuple[int, int], Callable[..., np.ndarray]] = {}
    for variable in (*model.potentials, *model.observed_RVs):
        mechanism = getattr(variable.tag, "mechanism", None)
        if mechanism is not None and hasattr(mechanism, "noise_logp") and not mechanism.unknown:
            [statistic], data = view([variable.tag.statistic]), variable.tag.released
            if (key := (id(mechanism), data.type.ndim)) not in of_mechanisms:
                difference = pt.tensor("noise", dtype="float64", shape=(None,) * data.type.ndim)
                noise = _function(model, [difference], mechanism.noise_logp(difference))
                of_mechanisms[key] = noise
            noise = of_mechanisms[key]
            lowest, highest = mechanism.noisy_range(_function(model, [], data)())
        else:
            found = _as_difference(view, *view.log_densities([variable]))
            if found is None:
                continue
            statistic, data, difference, log_density = found
            [statistic] = rebuild([statistic], as_random)
            lowest = highest = _function(model, [], data)()
            noise = _function(model, [difference], log_density)
        if not latent.isdisjoint(ancestors([statistic])):
            yield ModelRelease(variable.name, statistic, lowest, highest, noise)


def _as_difference(
    view: ModelView, log_density: TensorVariable
) -> tuple[TensorVariable, TensorVariable, TensorVariable, TensorVariable] | None:
    """Find a difference between data and a statistic that alone determines a log-density.

    Returns statistic, data, difference and log-density. The log-density is a function of the
    difference alone, not of free variables, and is highest at zero. Returns None if there is no
    such difference.
    """
    model, free = view.model, view.values.values()
    dependent = dependent_variables(free, [log_density])
    for node in reversed(list(io_toposort([], [log_density]))):
        subtracts = isinstance(node.op, Elemwise) and isinstance(node.op.scalar_op, Sub)
        of_free = [x for x in node.inputs if x in dependent]
        if not subtracts or len(of_free) != 1 or node.outputs[0] is log_density:
            continue
        [data] = [x for x in node.inputs if x not in dependent]
        [output] = node.outputs
        difference = output.type.clone(shape=(None,) * output.type.ndim)()
        [rest] = rebuild([log_density], {output: difference})
        if dependent_variables(free, [rest]).isdisjoint([rest]) and _is_noise(
            _function(model, [difference], rest), _function(model, [], data)().shape
        ):
            return of_free[0], data, difference, rest
    return None


def _is_noise(log_density: Callable[[np.ndarray], np.ndarray], shape: tuple[int, ...]) -> bool:
    try:
        return NoiseLaw(log_density, shape).deviations is not None
    except FAILURES:  # such as an index that is out of range
        return False


def _function(
    model: Model, inputs: Sequence[Variable], output: Variable
) -> Callable[..., np.ndarray]:
    function = compile_in_python(model, inputs, [output])
    dtypes = [x.type.dtype for x in inputs]

    def call(*values: np.ndarray) -> np.ndarray:
        with np.errstate(all="ignore"):
            cast = [np.asarray(x).astype(dtype) for x, dtype in zip(values, dtypes, strict=True)]
            return np.asarray(function(*cast)[0], dtype=np.float64)

    return call
