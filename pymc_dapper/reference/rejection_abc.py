r"""Exact rejection sampling from the posterior given a private release.

Draw parameters theta from their prior and a statistic s from the model; accept with probability

    eta(s_dp | s) / sup eta,

where eta is the mechanism's density at the released value s_dp and sup eta its largest value over
all statistics. Accepted draws have density proportional to p(theta) p(s | theta) eta(s_dp | s), so
the accepted theta are independent draws from p(theta | s_dp). Approximate Bayesian computation
accepts draws near the data, and its kernel is a choice that makes it approximate. Here the kernel
is the mechanism, which is known, and nothing is approximate.

The price is the acceptance rate, which is p(s_dp) / sup eta: it falls with the number of released
values and with the privacy budget.

References
----------
Gong, R. (2022). Exact inference with approximate computation for differentially private data via
perturbations. Journal of Privacy and Confidentiality 12(2). arXiv:1909.12237. Algorithm 3.
"""

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import arviz as az
import numpy as np
import pymc as pm
import pytensor.tensor as pt
from numpy.typing import ArrayLike
from rich.progress import Progress

from pymc_dapper.checks import has_shape, whole_number
from pymc_dapper.mechanisms import KNormMechanism, Mechanism, RandomizedResponse
from pymc_dapper.mechanisms.additive import AdditiveNoise
from pymc_dapper.mechanisms.arguments import with_suppressed
from pymc_dapper.reference._forward_model import ForwardModel

Draws = dict[str, np.ndarray]
Seed = int | Sequence[int] | np.random.Generator | None

ROUNDING = 1e-9
"""How far rounding may lift a log-density above its bound; relative to it if it is large."""


@dataclass(frozen=True, eq=False)
class RejectionDraws:
    """Independent draws from a posterior, with their cost.

    Attributes
    ----------
    draws : dict of str to (N, ...) array
        The accepted draws of each variable.
    simulations : int
        Number of simulations up to the last one that was used.
    log_bound : float
        The bound on the mechanism's log-density.
    largest_log_density : float
        The largest value found. If it is far below the bound, a lower valid bound would need fewer
        simulations for the same posterior.
    coords, dims : dict
        Coordinates and dims of the variables, as ArviZ has them.
    """

    draws: Draws
    simulations: int
    log_bound: float
    largest_log_density: float
    coords: Mapping[str, Any] = field(default_factory=dict)
    dims: Mapping[str, Any] = field(default_factory=dict)

    @property
    def accepted(self) -> int:
        """Number of accepted draws."""
        return len(next(iter(self.draws.values())))

    @property
    def acceptance(self) -> float:
        """Share of the simulations that was accepted."""
        return self.accepted / self.simulations

    @property
    def log_evidence(self) -> float:
        """Log-density of the release, all else marginalised: bound plus log acceptance."""
        return self.log_bound + float(np.log(self.acceptance))

    @property
    def log_evidence_se(self) -> float:
        """Monte Carlo standard error of `log_evidence`."""
        return float(np.sqrt((1 - self.acceptance) / self.accepted))

    def to_datatree(self) -> Any:
        """Give the draws to ArviZ, as one chain.

        Returns
        -------
        DataTree
            With the group ``posterior``; its attributes hold the number of simulations and the
            acceptance rate.
        """
        posterior = {name: values[None] for name, values in self.draws.items()}
        attributes = {"simulations": self.simulations, "acceptance": self.acceptance}
        return az.from_dict(
            {"posterior": posterior},
            coords=dict(self.coords),
            dims=dict(self.dims),
            attrs={"posterior": attributes},
        )


def rejection_abc(
    prior: Callable[[int, np.random.Generator], Mapping[str, ArrayLike]],
    statistic: Callable[[Draws, np.random.Generator], Any],
    mechanism: Callable[[Any], ArrayLike] | Mechanism,
    *,
    log_bound: float | None = None,
    released: ArrayLike | None = None,
    draws: int = 1_000,
    max_simulations: int = 10_000_000,
    batch_size: int = 10_000,
    random_seed: Seed = None,
    progressbar: bool = True,
) -> RejectionDraws:
    """Draw independently from the posterior of a model's parameters given a private release.

    Parameters
    ----------
    prior : callable
        ``prior(size, rng)`` draws parameters: a mapping of names to arrays of shape (size, ...).
    statistic : callable
        ``statistic(parameters, rng)`` draws the confidential statistic of as many data sets, one
        for each parameter: an array of shape (size, ...).
    mechanism : callable or Mechanism
        ``mechanism(statistic)`` gives the log-density of the release for each statistic, shape
        (size,). Or a mechanism object, with `released`.
    log_bound : float, optional
        An upper bound of that log-density over all statistics. For mechanism objects it is derived;
        see `mechanism_log_bound`.
    released : array_like, optional
        The mechanism object's release, in the shape of one statistic.
    draws : int
        Number of draws wanted.
    max_simulations : int
        Budget: the run stops there with the draws it has, and warns.
    batch_size : int
        Number of data sets simulated at a time.
    random_seed : int, Generator, ..., optional
        Seed, for `numpy.random.default_rng`.
    progressbar : bool
        Whether to show progress.

    Returns
    -------
    RejectionDraws
        The statistic of each draw is kept under the name ``"statistic"``, unless a parameter has
        that name.

    Raises
    ------
    TypeError
        If the bound of a mechanism object isn't known and isn't given.
    ValueError
        If an argument makes no sense, if the mechanism has no finite bound, if a log-density is
        nan, or above the bound (the draws wouldn't be from the posterior), or if a callable
        returns a wrong shape.
    RuntimeError
        If nothing was accepted within the budget.

    Notes
    -----
    Algorithm 3 of Gong (2022, Journal of Privacy and Confidentiality 12(2)).

    Examples
    --------
    >>> result = rejection_abc(
    ...     lambda size, rng: {"theta": rng.gamma(25, 1, size)},
    ...     lambda parameters, rng: rng.poisson(parameters["theta"]),
    ...     lambda s: -np.abs(37.4 - s) / 5,
    ...     log_bound=0.0,
    ...     random_seed=1,
    ...     progressbar=False,
    ... )
    >>> result.accepted
    1000
    """
    if isinstance(mechanism, Mechanism):
        if released is None:
            raise ValueError("released is needed: it is what the mechanism released.")
        if log_bound is None:
            log_bound = mechanism_log_bound(mechanism, released)
        log_density: Callable[[Any], ArrayLike] = mechanism_log_density(mechanism, released)
    else:
        if released is not None:
            raise ValueError(
                "released goes with a mechanism object. A function holds its release: leave "
                "released out."
            )
        log_density = mechanism
    if log_bound is None:
        raise ValueError(
            "log_bound is needed: an upper bound of the mechanism's log-density over all "
            "statistics. For additive noise it is the noise's log-density at zero."
        )
    bound = _checked_bound("log_bound", log_bound)

    def simulate(size: int, rng: np.random.Generator) -> tuple[Draws, np.ndarray]:
        parameters = _checked_draws(prior(size, rng), size)
        s = statistic(parameters, rng)
        kept = _one_each("statistic", s, size)
        density = np.asarray(log_density(s), dtype=float)
        why = ", one for each statistic: sum over its entries"
        has_shape(density, "the mechanism's log-density", (size,), why=why)
        _check_bounded("the mechanism", density, bound)
        return {"statistic": kept, **parameters}, density

    rng = np.random.default_rng(random_seed)
    return _collect(simulate, bound, rng, draws, max_simulations, batch_size, progressbar)


def rejection_abc_model(
    model: pm.Model,
    bounds: Mapping[str, float | Mechanism],
    *,
    var_names: Sequence[str] | None = None,
    draws: int = 1_000,
    max_simulations: int = 10_000_000,
    batch_size: int = 1_000,
    random_seed: Seed = None,
    progressbar: bool = True,
) -> RejectionDraws:
    """Draw independently from the posterior of a PyMC model, by rejection.

    The model is run forward: its free variables, records and parameters, are drawn from their prior
    in compiled batches. Its Potentials and the densities of its observed variables, evaluated
    there, decide on acceptance.

    Parameters
    ----------
    model : Model
        The model.
    bounds : mapping of str to float or Mechanism
        For each Potential and each observed variable, an upper bound of its log-density; or the
        mechanism whose ``potential`` or ``observe`` made it, whose bound is derived.
    var_names : sequence of str, optional
        Variables to keep; all free and deterministic ones by default, records included.
    draws, max_simulations, batch_size, random_seed, progressbar
        As in `rejection_abc`.

    Returns
    -------
    RejectionDraws

    Raises
    ------
    TypeError, ValueError, RuntimeError
        As `rejection_abc`; and ValueError if a factor has no bound, or if the model's prior can't
        be drawn from: an improper one, or one that a transform restricts.

    Examples
    --------
    >>> with pm.Model() as model:
    ...     theta = pm.Gamma("theta", 25, 1)
    ...     s = pm.Poisson("s", theta)
    ...     noisy = pm.Laplace("noisy", s, 5, observed=37.4)
    >>> bound = -np.log(2 * 5)
    >>> result = rejection_abc_model(model, {"noisy": bound}, random_seed=1, progressbar=False)
    >>> sorted(result.draws)
    ['s', 'theta']
    """
    forward = ForwardModel(model, var_names)
    bound_of = _factor_bounds(forward, bounds)

    def simulate(size: int, rng: np.random.Generator) -> tuple[Draws, np.ndarray]:
        variables, log_factors = forward.draw(size)
        for name, density in zip(forward.factor_names, log_factors.T, strict=True):
            _check_bounded(f"'{name}'", density, bound_of[name])
        return variables, np.asarray(log_factors.sum(axis=1))

    rng = np.random.default_rng(random_seed)
    forward.seed(rng)
    total = sum(bound_of.values())
    found = _collect(simulate, total, rng, draws, max_simulations, batch_size, progressbar)
    dims = {x: d for x, d in model.named_vars_to_dims.items() if x in forward.var_names}
    used = {dim for names in dims.values() for dim in names}
    coords = {x: list(v) for x, v in model.coords.items() if x in used and v is not None}
    return replace(found, coords=coords, dims=dims)


def _collect(
    simulate: Callable[[int, np.random.Generator], tuple[Draws, np.ndarray]],
    log_bound: float,
    rng: np.random.Generator,
    draws: int,
    max_simulations: int,
    batch_size: int,
    progressbar: bool,
) -> RejectionDraws:
    """Simulate until there are enough draws, or the budget is used up."""
    wanted = whole_number(draws, "draws", at_least=1)
    budget = whole_number(max_simulations, "max_simulations", at_least=1)
    batch = whole_number(batch_size, "batch_size", at_least=1)
    kept: list[Draws] = []
    accepted = simulations = 0
    largest = -np.inf
    with Progress(disable=not progressbar) as bar:
        task = bar.add_task("Rejection ABC", total=wanted)
        while accepted < wanted and simulations < budget:
            size = min(batch, budget - simulations)
            variables, log_density = simulate(size, rng)
            largest = max(largest, float(log_density.max()))
            places = np.flatnonzero(accept(log_density - log_bound, rng))
            if accepted + places.size >= wanted:
                places = places[: wanted - accepted]
                size = int(places[-1]) + 1  # the simulations after the last draw aren't counted
            kept.append({name: values[places] for name, values in variables.items()})
            accepted += places.size
            simulations += size
            found = f"Rejection ABC: {accepted} of {simulations} simulations accepted"
            bar.update(task, completed=accepted, description=found)
    if accepted == 0:
        raise RuntimeError(
            f"none of {simulations} simulations was accepted. The largest density seen is "
            f"exp({largest - log_bound:.3g}) of the bound. " + _remedy(largest)
        )
    if accepted < wanted:
        warnings.warn(
            f"the budget of {simulations} simulations gave {accepted} of the {wanted} draws that "
            "were wanted. They are from the posterior, only fewer. Raise max_simulations for more.",
            stacklevel=3,
        )
    together = {name: np.concatenate([part[name] for part in kept]) for name in kept[0]}
    return RejectionDraws(together, simulations, log_bound, largest)


def accept(log_ratio: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Accept each with probability ``exp(log_ratio)``."""
    return -rng.exponential(size=log_ratio.shape) < log_ratio


def _remedy(largest: float) -> str:
    if largest == -np.inf:
        return "The release is impossible for every statistic simulated: check model and release."
    return (
        "Raise max_simulations; lower the bound if it isn't the smallest one; or use DapperStep, "
        "which takes releases that the prior seldom leads to."
    )


def _factor_bounds(
    forward: ForwardModel, bounds: Mapping[str, float | Mechanism]
) -> dict[str, float]:
    missing = [name for name in forward.factor_names if name not in bounds]
    unknown = [name for name in bounds if name not in forward.factor_names]
    if missing or unknown:
        raise ValueError(
            "bounds must have an upper bound for each Potential and each observed variable, "
            f"{forward.factor_names}: "
            + (f"it lacks {missing}" if missing else f"it has {unknown}, which aren't among them")
            + ". Give a number, or the mechanism that the factor was made from."
        )
    return {name: _factor_bound(forward, name, bounds[name]) for name in forward.factor_names}


def _factor_bound(forward: ForwardModel, name: str, bound: float | Mechanism) -> float:
    if not isinstance(bound, Mechanism):
        return _checked_bound(f"the bound of '{name}'", bound)
    released = forward.released(name)
    if released is None:
        raise ValueError(
            f"what '{name}' released isn't known, as the model has no data '{name}_released'. Give "
            "its bound as a number: mechanism_log_bound(mechanism, released)."
        )
    return mechanism_log_bound(bound, released)


def _checked_bound(name: str, log_bound: float) -> float:
    bound = float(log_bound)
    if not np.isfinite(bound):
        raise ValueError(
            f"{name} must be a finite number, got {log_bound!r}. A mechanism whose density has no "
            "upper bound can't be used for rejection: use DapperStep."
        )
    return bound


def _check_bounded(name: str, log_density: np.ndarray, log_bound: float) -> None:
    if np.isnan(log_density).any():
        raise ValueError(
            f"the log-density of {name} is nan for a simulated statistic. It must be a number, or "
            "-inf where the release is impossible."
        )
    largest = float(log_density.max())
    if largest > log_bound + ROUNDING * max(1.0, abs(log_bound)):
        raise ValueError(
            f"the log-density of {name} is {largest:.12g} for a simulated statistic, above its "
            f"bound {log_bound:.12g}. Draws accepted by this bound wouldn't be from the posterior. "
            "Give the largest value that it can have for any statistic."
        )


def _checked_draws(parameters: Mapping[str, ArrayLike], size: int) -> Draws:
    if not isinstance(parameters, Mapping) or not parameters:
        raise ValueError(
            f"prior must return a mapping of names to arrays, got {type(parameters).__name__}."
        )
    return {name: _one_each(f"prior: '{name}'", x, size) for name, x in parameters.items()}


def _one_each(name: str, values: Any, size: int) -> np.ndarray:
    array = np.asarray(values)
    if array.shape[:1] != (size,):
        raise ValueError(
            f"{name} must have one entry for each of {size} simulations along the first axis, got "
            f"shape {array.shape}."
        )
    return array


def mechanism_log_bound(mechanism: Mechanism, released: ArrayLike) -> float:
    """Largest log-density of a release, over everything that the statistic could be.

    Additive noise, K-norm noise and randomised response are most likely to release the statistic
    itself. Clamped or suppressed values have probability 1 if the statistic is far beyond.

    Parameters
    ----------
    mechanism : Mechanism
        One that adds noise, or randomised response.
    released : array_like
        The released values.

    Returns
    -------
    float
        The bound, summed over the entries of the release.

    Raises
    ------
    TypeError
        If it isn't known for mechanisms of this kind.
    ValueError
        If the release can't have come from the mechanism.
    """
    values = _as_numbers(mechanism, released)
    mechanism.check_released("released", values)
    if not isinstance(mechanism, AdditiveNoise | KNormMechanism | RandomizedResponse):
        raise TypeError(
            f"the largest density of {type(mechanism).__name__} isn't known here: work out an "
            "upper bound of its log-density at this release, over all statistics, and give that."
        )
    if isinstance(mechanism, AdditiveNoise):
        # Noise is symmetric, so the middle of the value's span is likeliest.
        lowest, highest = mechanism.noisy_range(values)
        is_open = np.isinf(lowest) | np.isinf(highest)
        middle = np.where(is_open, 0.0, (lowest + highest) / 2)
        whole = mechanism.publication.start is not None
        nearest = np.round(middle) if whole else middle
        if mechanism.publication.nonempty:
            nearest = np.maximum(nearest, 1.0 if whole else np.finfo(float).tiny)
        log_density = np.asarray(mechanism.logp(values, nearest).eval(mode="FAST_COMPILE"))
        return float(np.where(is_open, 0.0, log_density).sum())
    return float(np.asarray(mechanism.logp(values, values).eval(mode="FAST_COMPILE")).sum())


def _as_numbers(mechanism: Mechanism, released: ArrayLike) -> np.ndarray:
    """Make an array of a release; suppressed entries become minus infinity."""
    return with_suppressed("released", released) if mechanism.suppresses else np.asarray(released)


def mechanism_log_density(mechanism: Mechanism, released: ArrayLike) -> Callable[[Any], np.ndarray]:
    """Log-density of a release as a function of statistics.

    It maps statistics of shape ``(size, *shape)`` to log-densities of shape ``(size,)``, and raises
    ValueError if the shape isn't the release's.
    """
    values = _as_numbers(mechanism, released)
    mechanism.check_released("released", values)
    compiled: dict[str, Callable[[Any], Any]] = {}

    def log_density(statistic: Any) -> np.ndarray:
        s = np.asarray(statistic)
        has_shape(s, "statistics", (None, *values.shape), why=", a release's for each simulation")
        dtype = "int64" if s.dtype.kind in "biu" else "float64"
        if dtype not in compiled:
            batch = pt.tensor("statistic", shape=(None, *values.shape), dtype=dtype)
            terms = mechanism.logp(values, batch)
            total = terms.sum(axis=tuple(range(1, terms.ndim)))
            with pm.Model():  # invalid parameters give -inf, as in a model
                compiled[dtype] = pm.compile([batch], total)
        return np.asarray(compiled[dtype](s.astype(dtype)))

    return log_density
