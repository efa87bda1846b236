"""Whether what was released can have come from what the model describes.

A release in wrong units, or of another number of people, is sampled without complaint: the chain
sits in the corner nearest to it. So each release is compared with the range of its statistic, and
where that isn't bounded, with data sets drawn from the prior.
"""

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod

import numpy as np
import pytensor.tensor as pt
from pymc import Model
from pymc.distributions.discrete import DiscreteUniformRV
from pymc.distributions.distribution import SymbolicRandomVariable
from pymc.distributions.multivariate import DirichletMultinomialRV
from pymc.pytensorf import compile as pymc_compile
from pytensor.graph.basic import Apply, Variable
from pytensor.graph.traversal import ancestors, io_toposort
from pytensor.scalar import Sub
from pytensor.tensor.elemwise import Elemwise
from pytensor.tensor.random import basic as rv
from pytensor.tensor.random.op import RandomVariable
from pytensor.tensor.variable import TensorVariable

from pymc_dapper.reading.bounds import ANY_NUMBER, Bounds, bounds_of
from pymc_dapper.reading.errors import ReadingError
from pymc_dapper.reading.graphs import dependent_variables, inline_symbolic_ops, rebuild
from pymc_dapper.reading.randomness import with_randomness
from pymc_dapper.reading.values import dim_lengths, forward, frozen_dims

MOST_DEVIATIONS = 12.0
"""From so many standard deviations of the noise on, chance isn't an explanation any more."""

LEAST_DROP = 20.0
"""Nor is it, if the noise's log-density is so far below its top, even if its tails are heavy."""

LARGEST_ROUNDING = 1e-3
"""A log-density that is rounded to more than this can't tell data sets apart."""

PRIOR_SPREAD = 10.0
"""How far beyond its draws the prior may reach, in their standard deviations."""

MOST_DRAWS, FEWEST_DRAWS = 64, 8
DRAWN_RECORDS = 2_000_000
"""Records are drawn from the prior about so many times in all."""

SMALLEST_WIDTH = 1e-280
"""What is narrower is no noise, but an equation."""

SEPARATE_ENTRIES = 50
"""A log-density that isn't a vector is examined entry by entry, for so many entries at most."""


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


def check_releases(model: Model, values: Sequence[TensorVariable], latent: str) -> None:
    """Compare the releases that latent variables enter with what these can give.

    Parameters
    ----------
    model : Model
        The model.
    values : sequence of TensorVariable
        Value variables of the latent records or counts.
    latent : str
        What they are, for messages: "400 records".

    Raises
    ------
    ReadingError
        If a release is so far out that the log-density can't tell data sets apart in double
        precision.

    Warns
    -----
    UserWarning
        If a release is further from anything that the model can give than noise explains.

    Notes
    -----
    What is compared are mechanisms that add independent noise, and other Potentials and observed
    variables that depend on free variables through a difference from released values only.
    """
    releases = list(find_releases(model, values))
    if not releases:
        return
    point = model.initial_point()
    size = sum(np.size(point[x.name]) for x in values)
    for release, drawn in zip(releases, _prior_draws(model, releases, size), strict=True):
        complaint = _complaint(release, drawn, latent)
        if complaint is not None:
            warnings.warn(
                f"'{release.name}': {complaint}. Look for wrong units, a wrong scale or a wrong "
                "number of records",
                UserWarning,
                stacklevel=3,
            )


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
            is_noise = _Noise(law, shape).deviations() is not None
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
    # Python mode: it is called some hundred times, and compiling takes longer.
    with model:
        function = pymc_compile(list(inputs), output, mode="FAST_COMPILE")
    dtypes = [x.type.dtype for x in inputs]

    def call(*values: np.ndarray) -> np.ndarray:
        with np.errstate(all="ignore"):
            cast = [np.asarray(x).astype(dtype) for x, dtype in zip(values, dtypes, strict=True)]
            return np.asarray(function(*cast), dtype=np.float64)

    return call


def _prior_draws(model: Model, releases: Sequence[Release], size: int) -> list[np.ndarray]:
    """Draw statistics from the prior; the first axis is that of the draws.

    There are no draws from an improper prior, or from a distribution that only has a density.
    """
    n_draws = int(np.clip(DRAWN_RECORDS // max(size, 1), FEWEST_DRAWS, MOST_DRAWS))
    statistics = [release.statistic for release in releases]
    try:
        randomness, graphs = with_randomness(inline_symbolic_ops(statistics))
        with model:
            draw = pymc_compile(
                randomness.inputs, graphs, mode="FAST_COMPILE", on_unused_input="ignore"
            )
        with np.errstate(all="ignore"):
            # A function leaves its generator as it is: each call gets one of its own.
            rngs = np.random.default_rng(0).spawn(n_draws)
            draws = [draw(*randomness.draw(rng)) for rng in rngs]
    except Exception:  # whatever a distribution of the user's raises
        shapes = [x.type.shape for x in statistics]
        return [
            np.empty((0, *(release.lowest.shape if None in shape else shape)))
            for release, shape in zip(releases, shapes, strict=True)
        ]
    return [np.array(x, dtype=np.float64) for x in zip(*draws, strict=True)]


class _Noise:
    """Noise on each entry of a release: its standard deviations, and how its density falls.

    Parameters
    ----------
    log_density : callable
        As :attr:`Release.noise`.
    shape : tuple of int
        Shape of the release.
    """

    def __init__(self, log_density: Callable[[np.ndarray], np.ndarray], shape: tuple[int, ...]):
        self.log_density = log_density
        self.shape = shape
        self.size = prod(shape)
        self._top = log_density(np.zeros(shape))
        self._entrywise = self._top.size == self.size
        self._whole = False
        if self._is_known:
            below, at, above = (self.drop(np.full(self.size, x)) for x in (0.9, 1.0, 1.1))
            skipped = (below == np.inf) & (at < np.inf)
            cut_off = (below == 0) & (at > 0) & (at == above) & (at < np.inf)
            self._whole = bool(np.any(skipped | cut_off))

    @property
    def _is_known(self) -> bool:
        can_be_told = self._entrywise or self.size <= SEPARATE_ENTRIES
        return can_be_told and bool(np.all(np.isfinite(self._top)))

    def drop(self, distance: np.ndarray) -> np.ndarray:
        """Return how far the log-density of each entry's noise lies below that of none."""
        if self._whole:
            distance = np.rint(distance)
        if self._entrywise:
            at = self.log_density(np.reshape(distance, self.shape))
            return np.nan_to_num((self._top - at).ravel(), nan=np.inf, posinf=np.inf)
        drops = np.empty(self.size)
        for k, each in enumerate(distance):
            alone = np.zeros(self.size)
            alone[k] = each
            drops[k] = np.sum(self._top) - np.sum(self.log_density(alone.reshape(self.shape)))
        return np.nan_to_num(drops, nan=np.inf, posinf=np.inf)

    def deviations(self) -> np.ndarray | None:
        """Compute the noise's standard deviations, by quadrature.

        None where there is none: if the density isn't highest at zero, or if it says what the
        statistic is exactly.
        """
        if not self._is_known:
            return None
        width = np.ones(self.size)
        for _ in range(1000):
            narrow = self.drop(width) < 0.5
            if not narrow.any():
                break
            width[narrow] *= 2
        for _ in range(1000):
            wide = self.drop(width / 2) >= 0.5
            if not wide.any():
                break
            width[wide] /= 2
        # Ever sparser, to a hundred widths.
        steps = 0.1 * np.sinh(np.linspace(-7.6, 7.6, 161))
        drops = np.array([self.drop(width * step) for step in steps])
        peaked = np.min(drops) > -1e-6 and np.all(self.drop(width) >= 0.5)
        if not peaked or np.any(width < SMALLEST_WIDTH):
            return None
        weights = np.exp(-drops)
        x = np.outer(steps, width)
        x = np.rint(x) if self._whole else x
        squares = np.trapezoid(x**2 * weights, x, axis=0) / np.trapezoid(weights, x, axis=0)
        return np.sqrt(squares) if np.all(squares > 0) else None


def _complaint(release: Release, draws: np.ndarray, latent: str) -> str | None:
    """Say what is wrong with a release, if anything is."""
    if not np.all(np.isfinite(release.lowest) | np.isfinite(release.highest)):
        return None
    draws = draws[np.isfinite(draws).all(axis=tuple(range(1, draws.ndim)))]
    n_draws, *each = draws.shape
    shape = np.broadcast_shapes(release.lowest.shape, tuple(each))
    lowest, highest = (np.broadcast_to(x, shape).ravel() for x in (release.lowest, release.highest))
    draws = draws.reshape(n_draws, *(1,) * (len(shape) - len(each)), *each)
    draws = np.broadcast_to(draws, (n_draws, *shape)).reshape(n_draws, prod(shape))
    noise = _Noise(release.noise, shape)
    deviations = noise.deviations()
    if deviations is None:
        return None
    reach = _Reach(_range(release.statistic), draws, latent)
    distance = np.maximum(np.maximum(reach.lower - highest, lowest - reach.upper), 0.0)
    drops = noise.drop(distance)
    lost = reach.bounded & np.isfinite(drops) & (np.spacing(drops) > LARGEST_ROUNDING)
    if lost.any():
        k = int(np.argmax(lost))
        raise ReadingError(
            f"'{release.name}': released {_number(lowest[k], highest[k])} is so far from "
            f"{reach.told(k)}, that in double precision all data sets have the same log-density. "
            "Nothing can be sampled: look for wrong units, a wrong scale or a wrong number of "
            "records"
        )
    far = (distance > MOST_DEVIATIONS * deviations) & (drops > LEAST_DROP + np.log(noise.size))
    if far.any():
        k = int(np.argmax(np.where(far, distance / deviations, 0.0)))
        others = np.count_nonzero(far) - 1
        return (
            f"released {_number(lowest[k], highest[k])} is "
            f"{distance[k] / deviations[k]:.0f} noise standard deviations from {reach.told(k)}"
            + (f", and {others} more of its values are as far out" if others else "")
        )
    if np.array_equal(lowest, highest) and len(draws) and noise.size > 1:
        return _complaint_of_sums(lowest, draws, noise, deviations)
    return None


def _range(statistic: TensorVariable) -> Bounds:
    """Bound a statistic by the supports of the random variables that it is computed from."""
    known: dict[Variable, Bounds] = {}
    for node in io_toposort([], [statistic]):
        if isinstance(node.op, RandomVariable | SymbolicRandomVariable):
            for x in node.outputs:
                known[x] = _support(node, known) if hasattr(x.type, "dtype") else ANY_NUMBER
    return bounds_of(statistic, known) or ANY_NUMBER


def _support(node: Apply, known: Mapping[Variable, Bounds]) -> Bounds:
    """Bound what a random variable can be, given what its parameters can be."""
    if not isinstance(node.op, RandomVariable):
        return ANY_NUMBER
    parameters = node.op.dist_params(node)
    bounds = [bounds_of(x, known) or ANY_NUMBER for x in parameters]
    match node.op:
        case rv.BernoulliRV() | rv.BetaRV() | rv.DirichletRV():
            return Bounds(0.0, 1.0)
        case rv.CategoricalRV() if parameters[0].type.shape[-1] is not None:
            return Bounds(0.0, parameters[0].type.shape[-1] - 1.0)
        case rv.BinomialRV() | rv.BetaBinomialRV() | rv.MultinomialRV() | DirichletMultinomialRV():
            return Bounds(0.0, bounds[0].high)
        case rv.UniformRV() | DiscreteUniformRV():
            return Bounds(bounds[0].low, bounds[1].high)
        case rv.PoissonRV() | rv.NegBinomialRV() | rv.GeometricRV() | rv.GammaRV():
            return Bounds(0.0, np.inf)
        case rv.ExponentialRV() | rv.LogNormalRV() | rv.WeibullRV() | rv.HalfCauchyRV():
            return Bounds(0.0, np.inf)
    return ANY_NUMBER


class _Reach:
    """Where the entries of a statistic can lie.

    Attributes
    ----------
    lower, upper : ndarray
        The range of each entry: its bounds, and where it has none, where the prior reaches.
    bounded : ndarray of bool
        Which entries have bounds on both sides.
    """

    def __init__(self, bounds: Bounds, draws: np.ndarray, latent: str):
        lower, upper = (np.full(draws.shape[1], end) for end in (bounds.low, bounds.high))
        self.bounded = np.isfinite(lower) & np.isfinite(upper)
        self._draws, self._latent = draws, latent
        if len(draws):
            margin = PRIOR_SPREAD * draws.std(axis=0)
            lower = np.where(np.isfinite(lower), lower, np.min(draws, axis=0) - margin)
            upper = np.where(np.isfinite(upper), upper, np.max(draws, axis=0) + margin)
        self.lower, self.upper = lower, upper

    def told(self, k: int) -> str:
        """Say where an entry can lie."""
        if self.bounded[k]:
            lower, upper = self.lower[k], self.upper[k]
            return f"anything that {self._latent} can give, {lower:.6g} to {upper:.6g}"
        drawn = self._draws[:, k]
        return (
            "where the prior leads: data sets drawn from it give "
            f"{drawn.min():.6g} to {drawn.max():.6g}"
        )


def _complaint_of_sums(
    released: np.ndarray, draws: np.ndarray, noise: "_Noise", deviations: np.ndarray
) -> str | None:
    """Compare what doesn't vary among data sets, such as the total of a table, with the release."""

    def too_far(distance: float) -> bool:
        # With heavy tails, a single entry may well explain all of it.
        at_once = noise.drop(distance * deviations).min()
        return distance > MOST_DEVIATIONS and bool(at_once > LEAST_DROP)

    total = draws.sum(axis=1)
    deviation = float(np.sqrt(np.sum(deviations**2)))
    distance = abs(released.sum() - total[0]) / deviation
    if np.ptp(total) < 1e-3 * deviation and too_far(distance):
        return (
            f"the released values add up to {released.sum():.6g}, which is {distance:.0f} noise "
            f"standard deviations from {total[0]:.6g}, what they come to in all data sets"
        )
    if len(draws) < 3 * draws.shape[1]:
        return None  # too few to tell what never varies from what didn't
    centre = draws.mean(axis=0)
    _, spread, directions = np.linalg.svd((draws - centre) / deviations, full_matrices=False)
    fixed = directions[spread < 1e-3]
    distance = float(np.linalg.norm(fixed @ ((released - centre) / deviations)))
    if too_far(distance - np.sqrt(len(fixed))):
        return (
            f"the released values are {distance:.0f} noise standard deviations from satisfying "
            "the linear equations that hold in all data sets"
        )
    return None


def _number(lowest: float, highest: float) -> str:
    """Show a released value; of a clamped one, the limit."""
    return f"{lowest if np.isfinite(lowest) else highest:.6g}"
