"""Find the releases of a model: statistics to which noise of a known law was added."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pytensor.tensor as pt
from pymc import Model
from pytensor.graph.basic import Variable
from pytensor.graph.traversal import ancestors, io_toposort
from pytensor.scalar import Sub
from pytensor.tensor.elemwise import Elemwise
from pytensor.tensor.variable import TensorVariable

from pymc_dapper.reading.evaluation import compile_in_python
from pymc_dapper.reading.graphs import dependent_variables, rebuild
from pymc_dapper.reading.releases.noise_law import NoiseLaw
from pymc_dapper.reading.values import dim_lengths, forward, frozen_dims


@dataclass(frozen=True)
class Release:
    """A release: a statistic to which noise of a known law was added.

    Attributes
    ----------
    name : str
        Name of the Potential or observed variable.
    statistic : TensorVariable
        What the noise was added to, in terms of random variables.
    lowest, highest : ndarray
        Where the noisy value lay: the released value, or beyond it where that was clamped.
    noise : callable
        ``noise(difference) -> ndarray``, the log-density of the noise: a value for each entry of
        the difference, or one in all.
    """

    name: str
    statistic: TensorVariable
    lowest: np.ndarray
    highest: np.ndarray
    noise: Callable[[np.ndarray], np.ndarray]


def find_releases(model: Model, values: Sequence[TensorVariable]) -> Iterator[Release]:
    """Find the releases that latent variables enter, and whose noise has a law that is known.

    Parameters
    ----------
    model : Model
        The model.
    values : sequence of TensorVariable
        Value variables of the latent records or counts.

    Yields
    ------
    Release
    """
    constants = frozen_dims(model, dim_lengths(model))
    naturals = {x: x for x in model.free_RVs}
    as_random = dict(zip(model.value_vars, forward(model, naturals), strict=True))
    latent = {model.values_to_rvs[value] for value in values}
    for variable in (*model.potentials, *model.observed_RVs):
        mechanism = getattr(variable.tag, "mechanism", None)
        if mechanism is not None and hasattr(mechanism, "noise_logp"):
            released = _evaluate(model, variable.tag.released)
            lowest, highest = mechanism.range_before_clamping(released)
            noise = pt.tensor("noise", dtype="float64", shape=(None,) * released.ndim)
            law = _function(model, [noise], mechanism.noise_logp(noise))
            release = Release(variable.name, variable.tag.statistic, lowest, highest, law)
        else:
            [written] = model.logp([variable], sum=False)
            found = _as_difference(model, variable.name, written)
            if found is None:
                continue
            [statistic] = rebuild([found.statistic], as_random)
            release = replace(found, statistic=statistic)
        [statistic] = rebuild([release.statistic], constants)
        if not latent.isdisjoint(ancestors([statistic])):
            yield replace(release, statistic=statistic)


def _as_difference(model: Model, name: str, log_density: TensorVariable) -> Release | None:
    """Find the difference between data and a statistic that is all a log-density depends on.

    That is, the log-density is a function of the difference, and of no free variable, with its top
    at zero.
    """
    free = model.value_vars
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
        if not dependent_variables(free, [rest]).isdisjoint([rest]):
            continue
        law = _function(model, [difference], rest)
        released = _evaluate(model, data)
        shape = (1,) * (output.type.ndim - released.ndim) + released.shape
        try:
            is_noise = NoiseLaw(law, shape).deviations() is not None
        except MemoryError:
            raise
        except Exception:  # such as an index that is out of range
            continue
        if is_noise:
            return Release(name, of_free[0], released, released, law)
    return None


def _evaluate(model: Model, data: Variable) -> np.ndarray:
    return np.asarray(_function(model, [], data)(), dtype=np.float64)


def _function(
    model: Model, inputs: Sequence[Variable], output: Variable
) -> Callable[..., np.ndarray]:
    function = compile_in_python(model, inputs, [output])
    dtypes = [x.type.dtype for x in inputs]

    def call(*values: np.ndarray) -> np.ndarray:
        cast = [np.asarray(x).astype(dtype) for x, dtype in zip(values, dtypes, strict=True)]
        with np.errstate(all="ignore"):
            return np.asarray(function(*cast)[0], dtype=np.float64)

    return call
