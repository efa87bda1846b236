r"""Maximum likelihood from a private release, by Monte Carlo EM.

The likelihood of theta is the mean of the mechanism's density eta(s_dp | s(x)) over data sets x
drawn from the model at theta. EM maximises it by the complete-data log-likelihood log f(x; theta):

- E-step at theta_t: draw x_1, ..., x_M from the model at theta_t, with weights w_j proportional to
  eta(s_dp | s(x_j)). Then Q(theta) = sum_j w_j log f(x_j; theta) estimates its mean given s_dp.
- M-step: theta_{t+1} maximises Q.

**Stopping.** Q has Monte Carlo error. The increase D of Q in an M-step has a standard error se,
from the weights and the log-ratios log f(x_j; theta_{t+1}) - log f(x_j; theta_t). As in the
ascent-based rule of Caffo, Jank and Jones (2005): a step counts if D - z se > 0, since the
likelihood then most probably rose; if not, M grows and the step is made again. The iterations end
when D + z se is below a tolerance.

**Information.** By Louis (1982) the observed information is the mean, given s_dp, of the complete
information -d^2 log f less the covariance of the complete score u = d log f. The second term is the
information lost by noise and missing data. Both are weighted moments of a sample at the estimate.

**The last steps.** Near the maximum EM slows down, more so with more missing information, and stops
a little short of it. The sample for the information I also gives the score S, so Newton's step I^-1
S goes the rest of the way. It is repeated with new samples until it is no larger than its own Monte
Carlo error, whose covariance is I^-1 Cov(S) I^-1.

**Independent blocks.** If release and model split into K independent parts (for example records
with separate noise), each part has its own weights. One weight for all parts together would depend
on a few draws only.

References
----------
Gong, R. (2022). Exact inference with approximate computation for differentially private data via
perturbations. Journal of Privacy and Confidentiality 12(2). arXiv:1909.12237.

Caffo, B. S., Jank, W. and Jones, G. L. (2005). Ascent-based Monte Carlo expectation-maximization.
Journal of the Royal Statistical Society B 67, 235-251.

Louis, T. A. (1982). Finding the observed information matrix when using the EM algorithm. Journal of
the Royal Statistical Society B 44, 226-233.
"""

import math
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from rich.progress import Progress
from scipy.optimize import minimize
from scipy.special import logsumexp

from pymc_dapper.checks import finite_number, has_shape, real_numbers, whole_number

Simulate = Callable[[np.ndarray, int, np.random.Generator], Any]
LogDensity = Callable[[np.ndarray, Any], ArrayLike]
Maximise = Callable[[Any, np.ndarray], ArrayLike]
Bounds = Sequence[tuple[float | None, float | None]]
Seed = int | Sequence[int] | np.random.Generator | None

Z = 0.6744897501960817
"""Normal quantile of probability 3/4, as Caffo, Jank and Jones have it for all their errors."""
GROWTH = 1.5
"""Factor by which the sample grows after a step that doesn't count."""
FEWEST_EFFECTIVE = 100
"""With fewer effective draws, Monte Carlo errors aren't to be trusted."""
LARGEST_SHARE = 0.25
"""Monte Carlo error of the estimate that is tolerated, as a share of its standard error."""
NEWTON_ROUNDS = 20
"""Largest number of last steps."""
NEWTON_ERRORS = 3.0
"""Newton's steps end when they are shorter than this many of their Monte Carlo standard errors."""

TOO_NOISY = (
    "EM stopped: Q still increases by {:.3g}, but with standard error {:.1g} this can't be told "
    "from noise, even with max_draws = {} draws. Raise max_draws or tolerance."
)
TOO_MANY = (
    "EM stopped after max_iterations = {} M-steps, in the last of which Q increased by {:.3g}. "
    "Raise max_iterations, or start closer."
)
NOT_REGULAR = (
    "the observed information at theta = {} isn't positive definite, so that it says nothing about "
    "precision. The maximum may lie at the end of the parameters' range, or the release may not "
    "tell the parameters apart."
)
AT_THE_END = (
    "the likelihood still rises at theta = {}, towards the end of the parameters' range. Standard "
    "errors from the information aren't valid there."
)
ROUGH = (
    "the Monte Carlo error of the estimate isn't small beside its standard error, with final_draws "
    "= {}: the likelihood is flat. Raise final_draws."
)
TOO_FEW = (
    "the last sample has only {:.0f} effective draws, too few for its Monte Carlo errors to be "
    "trusted. If parts of the release are independent given the parameters, give each its own "
    "weights (blocks); or raise final_draws."
)
STILL_MOVING = (
    "the last steps, of size {}, are still larger than their Monte Carlo error. EM may have "
    "stopped too early: lower tolerance, or raise final_draws."
)


class EMIteration(NamedTuple):
    """One M-step.

    Attributes
    ----------
    estimate : (P,) array
        The maximiser.
    draws : int
        Number of draws in the E-step.
    ess : float
        Effective number of draws, 1 / sum of squared weights; the smallest of the blocks'.
    gain, gain_se : float
        Increase of Q and its Monte Carlo standard error.
    counted : bool
        Whether the step was taken, or made again with more draws.
    """

    estimate: np.ndarray
    draws: int
    ess: float
    gain: float
    gain_se: float
    counted: bool


@dataclass(frozen=True, eq=False)
class LouisMoments:
    """Score and information at theta, estimated from a weighted sample drawn there.

    `complete_information` and `missing_information` are the mean of the complete data's information
    and the covariance of their score. `score_mc_cov` is the Monte Carlo covariance of the score,
    `information_mc_se` the Monte Carlo standard error of each entry of the information, and `ess`
    the effective number of draws.
    """

    score: np.ndarray
    score_mc_cov: np.ndarray
    complete_information: np.ndarray
    missing_information: np.ndarray
    information_mc_se: np.ndarray
    ess: float

    @property
    def information(self) -> np.ndarray:
        """Observed information, by Louis."""
        return self.complete_information - self.missing_information

    @property
    def regular(self) -> bool:
        """Whether the information is positive definite."""
        found = self.information
        return bool(np.isfinite(found).all() and np.linalg.eigvalsh(found).min() > 0)

    @property
    def estimate_mc_se(self) -> np.ndarray:
        """Monte Carlo standard error of the zero of the score; nan if there is none."""
        if not self.regular:
            return np.full(len(self.score), np.nan)
        inverse = np.linalg.inv(self.information)
        return np.sqrt(np.diag(inverse @ self.score_mc_cov @ inverse))


@dataclass(frozen=True, eq=False)
class EMEstimate(LouisMoments):
    """A maximum likelihood estimate, with its two kinds of uncertainty.

    `standard_errors` measure the distance of the estimate from the truth, by noise and sampling;
    `estimate_mc_se` the distance from the exact maximum, by simulation.

    Attributes
    ----------
    estimate : (P,) array
        The estimate.
    estimate_mc_se : (P,) array
        Its Monte Carlo standard error.
    information : (P, P) array
        Observed information: `complete_information` less `missing_information`.
    information_mc_se : (P, P) array
        Monte Carlo standard error of each entry.
    complete_information, missing_information : (P, P) array
        Mean of the complete data's information given the release, and covariance of their score.
    score, score_mc_cov : array
        Score at the estimate, of shape (P,), and its Monte Carlo covariance.
    ess : float
        Effective number of draws behind these, the smallest of the blocks'.
    converged : bool
        Whether both EM and the last steps ended by their rules, with small Monte Carlo errors. If
        not, there was a warning.
    iterations : tuple of EMIteration
        The EM iterations.
    """

    estimate: np.ndarray
    converged: bool
    iterations: tuple[EMIteration, ...]

    @property
    def covariance(self) -> np.ndarray:
        """Inverse of the observed information, shape (P, P).

        Raises
        ------
        ValueError
            If the information isn't positive definite.
        """
        if not self.regular:
            raise ValueError(NOT_REGULAR.format(self.estimate))
        return np.linalg.inv(self.information)

    @property
    def standard_errors(self) -> np.ndarray:
        """Square roots of the diagonal of `covariance`, shape (P,)."""
        return np.sqrt(np.diag(self.covariance))


def monte_carlo_em(
    simulate: Simulate,
    log_mechanism: Callable[[Any], ArrayLike],
    log_likelihood: LogDensity,
    start: ArrayLike,
    *,
    maximise: Maximise | None = None,
    score: LogDensity | None = None,
    bounds: Bounds | None = None,
    tolerance: float = 1e-3,
    draws: int = 1_000,
    max_draws: int = 200_000,
    max_iterations: int = 500,
    final_draws: int = 50_000,
    random_seed: Seed = None,
    progressbar: bool = True,
) -> EMEstimate:
    """Estimate a model's parameters by maximum likelihood, from a private release.

    Parameters
    ----------
    simulate : callable
        ``simulate(theta, size, rng)`` draws `size` confidential data sets (or statistics that are
        sufficient for the other functions) from the model at theta, an array of shape (P,). Its
        result is passed to the other functions unchanged.
    log_mechanism : callable
        ``log_mechanism(data)`` is the release's log-density for each data set: shape (size,), or
        (size, K) for K independent blocks. Constants may be left out.
    log_likelihood : callable
        ``log_likelihood(theta, data)`` is the complete data's log-likelihood for each data set, in
        the same shape. Constants may be left out.
    start : array_like
        First value of theta, of shape (P,) or a number.
    maximise : callable, optional
        The M-step: ``maximise(data, weights)`` returns the theta that maximises
        ``sum(weights * log_likelihood(theta, data))``. By default it is done numerically, by
        SciPy's L-BFGS-B.
    score : callable, optional
        ``score(theta, data)`` is the derivative of `log_likelihood` by theta, one more axis of
        length P. By default it is differenced numerically.
    bounds : sequence of (low, high), optional
        Range of each parameter; None for an open end.
    tolerance : float
        EM stops when Q most probably increases by less: in units of the log-likelihood.
    draws : int
        Number of draws in the first E-step. It grows as needed.
    max_draws : int
        Largest number of draws in an E-step: EM stops if even these don't separate an increase from
        noise.
    max_iterations : int
        Largest number of M-steps.
    final_draws : int
        Number of draws behind the information and the last steps.
    random_seed : int, Generator, ..., optional
        Seed, for `numpy.random.default_rng`.
    progressbar : bool
        Whether to show progress.

    Returns
    -------
    EMEstimate

    Warns
    -----
    UserWarning
        If EM or the last steps didn't end by their rules, the information isn't positive definite,
        it rests on fewer than 100 effective draws, or the Monte Carlo error of the estimate is more
        than a quarter of its standard error.

    Raises
    ------
    ValueError
        If an argument makes no sense, a callable returns a wrong shape or a number that isn't one,
        all weights are zero, or an M-step fails.

    Notes
    -----
    The method, its stopping rule and their sources are described at the top of this module.

    Examples
    --------
    >>> result = monte_carlo_em(
    ...     lambda theta, size, rng: rng.poisson(theta[0], size),
    ...     lambda s: -np.abs(37.4 - s) / 5,
    ...     lambda theta, s: s * np.log(theta[0]) - theta[0],
    ...     start=30.0,
    ...     maximise=lambda s, weights: weights @ s,
    ...     random_seed=1,
    ...     progressbar=False,
    ... )
    >>> result.converged
    True
    """
    theta = real_numbers(np.atleast_1d(start), "start", vector=True, finite=True)
    if bounds is not None and len(bounds) != theta.size:
        raise ValueError(
            f"bounds must have a pair for each of the {theta.size} parameters, got {len(bounds)}."
        )
    tolerance = finite_number(tolerance, "tolerance", above=0)
    draws = whole_number(draws, "draws", at_least=2)
    max_draws = whole_number(max_draws, "max_draws", at_least=2)
    final_draws = whole_number(final_draws, "final_draws", at_least=2)
    max_iterations = whole_number(max_iterations, "max_iterations", at_least=1)

    rng = np.random.default_rng(random_seed)
    model = _Model(simulate, log_mechanism, log_likelihood, score, maximise, bounds, rng)
    with Progress(disable=not progressbar) as bar:
        task = bar.add_task("Monte Carlo EM", total=None)

        def report(note: str) -> None:
            bar.update(task, description=f"Monte Carlo EM: {note}")

        theta, iterations, trouble = _ascend(
            model, theta, tolerance, draws, max_draws, max_iterations, report
        )
        report("information and last steps")
        theta, moments, error = _newton(model, theta, final_draws)
    few = TOO_FEW.format(moments.ess) if moments.ess < FEWEST_EFFECTIVE else ""
    rough = ROUGH.format(final_draws) if _is_rough(moments) else ""
    problems = [problem for problem in (trouble, error, few, rough) if problem]
    for problem in problems:
        warnings.warn(problem, stacklevel=2)

    return EMEstimate(
        **vars(moments), estimate=theta, converged=not problems, iterations=tuple(iterations)
    )


@dataclass(frozen=True)
class _Sample:
    """Data sets with normalised weights; weights of shape (M, K)."""

    data: Any
    weights: np.ndarray
    shape: tuple[int, ...]

    @property
    def ess(self) -> float:
        return float((1 / (self.weights**2).sum(axis=0)).min())


@dataclass(frozen=True)
class _Model:
    """The user's functions, with checks at each call."""

    simulate: Simulate
    log_mechanism: Callable[[Any], ArrayLike]
    log_density: LogDensity
    user_score: LogDensity | None
    user_maximise: Maximise | None
    bounds: Bounds | None
    rng: np.random.Generator

    def sample(self, theta: np.ndarray, size: int) -> _Sample:
        """Draw at theta, weighted by the mechanism."""
        data = self.simulate(theta.copy(), size, self.rng)
        log_weights = np.asarray(self.log_mechanism(data), dtype=float)
        why = ", for each data set, and each of any independent blocks"
        has_shape(log_weights, "log_mechanism", (size,), (size, None), why=why)
        if np.isnan(log_weights).any() or np.isposinf(log_weights).any():
            raise ValueError(
                f"log_mechanism is nan or inf for a data set drawn at theta = {theta}: its weight "
                "would be, too. It must be finite, or -inf where the release is impossible."
            )
        return _Sample(data, importance_weights(log_weights, theta), log_weights.shape)

    def log_likelihood(self, theta: np.ndarray, sample: _Sample) -> np.ndarray:
        """Log-likelihood of each data set and block, of shape (M, K)."""
        values = np.asarray(self.log_density(theta.copy(), sample.data), dtype=float)
        has_shape(values, "log_likelihood", sample.shape, why=", as log_mechanism has")
        return values.reshape(sample.weights.shape)

    def score(self, theta: np.ndarray, sample: _Sample) -> np.ndarray:
        """Give the derivative of the log-likelihood, of shape (M, K, P)."""
        if self.user_score is None:
            step = np.finfo(float).eps ** 0.25
            return _difference(lambda t: self.log_likelihood(t, sample), theta, step)
        values = np.asarray(self.user_score(theta.copy(), sample.data), dtype=float)
        has_shape(values, "score", (*sample.shape, theta.size), why=", the parameters last")
        return values.reshape(*sample.weights.shape, theta.size)

    def hessian(self, theta: np.ndarray, sample: _Sample) -> np.ndarray:
        """Second derivative of the log-likelihood, of shape (M, K, P, P)."""
        step = np.finfo(float).eps ** (0.25 if self.user_score is None else 1 / 3)
        slope = _difference(lambda t: self.score(t, sample), theta, step)
        return (slope + slope.swapaxes(-1, -2)) / 2

    def maximise(self, theta: np.ndarray, sample: _Sample) -> np.ndarray:
        """Maximise the weighted log-likelihood, starting from theta if it is done numerically."""
        if self.user_maximise is None:
            return self._maximise_numerically(theta, sample)
        found = self.user_maximise(sample.data, sample.weights.reshape(sample.shape))
        new = np.atleast_1d(np.asarray(found, dtype=float))
        if new.shape != theta.shape or not np.isfinite(new).all():
            raise ValueError(
                f"maximise must return {theta.size} finite parameter(s), got {new.tolist()}."
            )
        return new

    def _maximise_numerically(self, theta: np.ndarray, sample: _Sample) -> np.ndarray:
        def objective(t: np.ndarray) -> float:
            value = -float((sample.weights * self.log_likelihood(t, sample)).sum())
            return value if math.isfinite(value) else math.inf

        def gradient(t: np.ndarray) -> np.ndarray:
            score = self.score(t, sample)
            return np.asarray(-np.einsum("mk,mkp->p", sample.weights, score))

        jac = None if self.user_score is None else gradient
        with np.errstate(all="ignore"):
            found = minimize(objective, theta, jac=jac, bounds=self.bounds, method="L-BFGS-B")
            stuck = not found.success and found.fun >= objective(theta)
        if stuck or not found.fun < math.inf:
            raise ValueError(
                f"the numerical M-step failed at theta = {theta} ({found.message}). Give bounds "
                "that keep the parameters where the log-likelihood is finite, put the parameters "
                "on another scale, or give maximise=."
            )
        return np.asarray(found.x, dtype=float)


def importance_weights(log_weights: np.ndarray, theta: np.ndarray) -> np.ndarray:
    """Weights of shape (M, K) that add up to 1 over the draws, for each block."""
    blocks = log_weights.reshape(len(log_weights), -1)
    impossible = np.isneginf(blocks).all(axis=0)
    if impossible.any():
        raise ValueError(
            f"the release is impossible for all {len(blocks)} data sets drawn at theta = {theta}"
            + (f", in block {impossible.argmax()}" if blocks.shape[1] > 1 else "")
            + ". Start closer to the release, or take more draws."
        )
    return np.exp(blocks - logsumexp(blocks, axis=0))


def _ascend(
    model: _Model,
    theta: np.ndarray,
    tolerance: float,
    draws: int,
    max_draws: int,
    max_iterations: int,
    report: Callable[[str], None],
) -> tuple[np.ndarray, list[EMIteration], str]:
    """Iterate EM by the ascent-based rule; the last value is an error message, if there is one."""
    iterations: list[EMIteration] = []
    for done in range(1, max_iterations + 1):
        sample = model.sample(theta, draws)
        new = model.maximise(theta, sample)
        gain, se = _gain(model, theta, new, sample)
        small = gain + Z * se < tolerance
        counted = small or gain - Z * se > 0
        iterations.append(EMIteration(new, draws, sample.ess, gain, se, counted))
        report(f"step {done}, {draws} draws, gain {gain:.2g} ± {se:.1g}")
        if small:
            return new, iterations, ""
        if counted:
            theta = new
            # The number of draws that would separate a gain of this size from noise.
            needed = math.ceil(min(draws * (2 * Z * se / gain) ** 2, max_draws))
            draws = max(draws, needed)
        elif draws < max_draws:
            draws = min(math.ceil(GROWTH * draws), max_draws)
        else:
            return theta, iterations, TOO_NOISY.format(gain, se, max_draws)
    return theta, iterations, TOO_MANY.format(max_iterations, gain)


def _gain(
    model: _Model, theta: np.ndarray, new: np.ndarray, sample: _Sample
) -> tuple[float, float]:
    """Increase of Q, and its standard error."""
    weights = sample.weights
    with np.errstate(invalid="ignore"):
        ratio = model.log_likelihood(new, sample) - model.log_likelihood(theta, sample)
    used = weights > 0
    if not np.isfinite(ratio[used]).all():
        raise ValueError(
            f"log_likelihood isn't finite at theta = {theta} or {new}, for data that the release "
            "allows. Make it finite, or keep the M-step within bounds= where it is."
        )
    ratio = np.where(used, ratio, 0.0)
    means = (weights * ratio).sum(axis=0)
    gain = float(means.sum())
    size = float(np.abs(weights * ratio).sum())
    if gain < -1e-6 * max(size, 1e-6):
        raise ValueError(
            f"the M-step from theta = {theta} to {new} made the weighted log-likelihood smaller, "
            f"by {-gain:.3g}: maximise doesn't fit log_likelihood."
        )
    return gain, float(np.sqrt((weights**2 * (ratio - means) ** 2).sum()))


def _newton(model: _Model, theta: np.ndarray, draws: int) -> tuple[np.ndarray, LouisMoments, str]:
    """Move to the zero of the score, up to Monte Carlo error."""
    for _ in range(NEWTON_ROUNDS):
        sample = model.sample(theta, draws)
        score, hessian = model.score(theta, sample), model.hessian(theta, sample)
        moments = louis(sample.weights, score, hessian, sample.ess)
        if not moments.regular:
            return theta, moments, NOT_REGULAR.format(theta)
        step = np.linalg.solve(moments.information, moments.score)
        if not _within(theta + step, model.bounds):
            return theta, moments, AT_THE_END.format(theta)
        theta = theta + step
        if np.all(np.abs(step) <= NEWTON_ERRORS * moments.estimate_mc_se):
            return theta, moments, ""
    return theta, moments, STILL_MOVING.format(np.abs(step))


def louis(weights: np.ndarray, score: np.ndarray, hessian: np.ndarray, ess: float) -> LouisMoments:
    """Weighted moments of the complete score and information, summed over the blocks.

    The weights of M draws for K independent blocks, shape (M, K), add up to 1 over the draws. Score
    (M, K, P) and Hessian (M, K, P, P) are those of the complete data's log-likelihood.
    """
    mean_score = np.einsum("mk,mkp->kp", weights, score)
    centred = score - mean_score
    spread = np.einsum("mkp,mkq->mkpq", centred, centred)
    terms = -hessian - spread
    means = np.einsum("mk,mkpq->kpq", weights, terms)
    squared = weights**2
    return LouisMoments(
        score=mean_score.sum(axis=0),
        score_mc_cov=np.einsum("mk,mkpq->pq", squared, spread),
        complete_information=-np.einsum("mk,mkpq->pq", weights, hessian),
        missing_information=np.einsum("mk,mkpq->pq", weights, spread),
        information_mc_se=np.sqrt(np.einsum("mk,mkpq->pq", squared, (terms - means) ** 2)),
        ess=ess,
    )


def _is_rough(moments: LouisMoments) -> bool:
    if not moments.regular:
        return False  # which is worse, and already reported
    standard_errors = np.sqrt(np.diag(np.linalg.inv(moments.information)))
    return bool(np.any(moments.estimate_mc_se > LARGEST_SHARE * standard_errors))


def _within(theta: np.ndarray, bounds: Bounds | None) -> bool:
    return bounds is None or all(
        (low is None or low <= value) and (high is None or value <= high)
        for value, (low, high) in zip(theta, bounds, strict=True)
    )


def _difference(
    function: Callable[[np.ndarray], np.ndarray], theta: np.ndarray, relative_step: float
) -> np.ndarray:
    """Central differences by each parameter, along a new last axis."""
    slopes = []
    for p in range(theta.size):
        step = np.zeros(theta.size)
        step[p] = relative_step * max(abs(theta[p]), 1.0)
        slopes.append((function(theta + step) - function(theta - step)) / (2 * step[p]))
    return np.stack(slopes, axis=-1)
