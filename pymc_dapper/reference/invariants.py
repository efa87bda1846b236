r"""Release under invariants: noise conditioned on exactly published totals.

A mechanism adds independent noise e to confidential cells s. Some functions of s are published
exactly: a total, the votes of an election. So the release s* = s + e is drawn given

    A s* = A s     (equalities: the invariants) and B s* >= b     (inequalities, as s* >= 0),

instead of being drawn first and forced into shape afterwards, which biases it. This is the
congenial mechanism of Gong and Meng (2020).

`sample_under_invariants`
    Draws, by Metropolised independent sampling.
`release_law`
    The exact law of a small release of whole numbers, by enumeration.
`privacy_loss`
    The largest log-ratio of two such laws, which shows the effect of invariants on privacy.
`log_likelihood`
    The analyst's side: the likelihood of a release under equalities.

**What remains of privacy.** Let the mechanism without restriction satisfy P(M(x) in B) <= exp(k
epsilon) P(M(x') in B) for data sets x and x' at distance k. The conditional one does with exp((1 +
gamma) k epsilon), for data sets that agree in the invariants; others it tells apart with certainty.
With equalities only, the normalisers of the two laws are equal and gamma is at most 0; for Laplace
noise (1 + gamma) k epsilon = ||s(x) - s(x')||_1 / scale. With inequalities the normalisers differ,
and their ratio comes on top: gamma is at most 1.

References
----------
Gong, R. and Meng, X.-L. (2020). Congenial differential privacy under mandated disclosure.
Foundations of Data Science Conference. arXiv:2008.10202.

Liu, J. S. (1996). Metropolized independent sampling with comparisons to rejection sampling and
importance sampling. Statistics and Computing 6, 113-119.
"""

from dataclasses import dataclass
from operator import index
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from rich.progress import Progress

from pymc_dapper.checks import has_shape, places, whole_number
from pymc_dapper.reference._linear_invariants import Elimination, eliminate

Inequalities = tuple[ArrayLike, ArrayLike]

MAX_STATES = 5_000_000
_BLOCK = 2**20
"""How many numbers to propose at once."""


@dataclass(frozen=True, eq=False)
class InvariantDraws:
    """Draws of a release under invariants.

    Attributes
    ----------
    draws : (chain, draw, ...) array
        Released values, in the shape of the table; integers if the noise is of whole numbers.
    acceptance_rate : (chain,) array
        Share of the proposals that were accepted after tuning.
    solvable_rate, feasible_rate : float
        Share of the proposals for which the equalities had a solution; and which satisfied the
        inequalities, too.
    solved_for : int array
        Cells that followed from the others, in the flat table.
    """

    draws: np.ndarray
    acceptance_rate: np.ndarray
    solvable_rate: float
    feasible_rate: float
    solved_for: np.ndarray

    def to_datatree(self) -> Any:
        """Return the draws as ArviZ has them: group "posterior", variable "release"."""
        import arviz as az

        return az.from_dict({"posterior": {"release": self.draws}})


@dataclass(frozen=True, eq=False)
class ReleaseLaw:
    """All releases that there can be, and how probable each is.

    Attributes
    ----------
    states : (states, cells) int array
        The releases.
    probabilities : (states,) array
        Their probabilities.
    """

    states: np.ndarray
    probabilities: np.ndarray


def sample_under_invariants(
    confidential: ArrayLike,
    noise: Any,
    *,
    equalities: ArrayLike | None = None,
    inequalities: Inequalities | None = None,
    proposal: Any = None,
    solve_for: ArrayLike | None = None,
    draws: int = 1000,
    tune: int = 1000,
    thin: int = 1,
    chains: int = 4,
    random_seed: int | np.random.Generator | None = None,
    progressbar: bool = True,
) -> InvariantDraws:
    """Draw a release under invariants by Metropolised independent sampling.

    The noise of the free cells is proposed from a law q, the other cells are solved for, and with p
    for the noise's density the proposal e* is accepted instead of e with probability min(1, p(e*)
    q(e_free) / (p(e) q(e*_free))) if it satisfies the inequalities, else not.

    Parameters
    ----------
    confidential : array_like
        The table s; of any shape, taken row by row.
    noise : SciPy distribution
        Law of each cell's noise, symmetric or not: ``scipy.stats.dlaplace(0.5)`` or
        ``scipy.stats.laplace(scale=2)``. Parameters may be arrays in the shape of the flat table.
        With a discrete law everything is in whole numbers.
    equalities : (m, cells) array_like, optional
        Coefficients A of what keeps its confidential value.
    inequalities : tuple of (k, cells) and (k,) array_like, optional
        B and b of ``B s* >= b``. The confidential table must satisfy them.
    proposal : SciPy distribution, optional
        Law q of a free cell's noise, of the same kind. By default the noise's own: with it the
        ratio p / q is bounded, so that no state can hold the chain for ever.
    solve_for : array_like of int, optional
        Which cells of the flat table to solve for. By default an elimination chooses.
    draws, tune, thin, chains : int
        Number of draws to keep and to drop of each chain; one of `thin` proposals is kept. All
        chains start at the confidential table: it is the one state that is known to be allowed.
    random_seed : int or Generator, optional
        Seed.
    progressbar : bool
        Whether to show the progress.

    Returns
    -------
    InvariantDraws

    Raises
    ------
    TypeError
        If a law can't be drawn from, or isn't of the noise's kind.
    ValueError
        If a shape or number makes no sense; if the confidential table isn't whole though the noise
        is, or violates an inequality; if the chosen cells can't be solved for.

    Notes
    -----
    A curator releases one draw, after enough tuning. The privacy guarantee is for the chain's
    limit, so check the traces and the effective sample size first.

    Examples
    --------
    >>> from scipy import stats
    >>> drawn = sample_under_invariants(
    ...     [[8, 3], [6, 4]],
    ...     stats.dlaplace(0.5),
    ...     equalities=[[1, 1, 1, 1]],
    ...     inequalities=(np.eye(4), np.zeros(4)),
    ...     random_seed=1,
    ...     progressbar=False,
    ... )
    >>> np.unique(drawn.draws.sum(axis=(2, 3)))
    array([21])
    """
    problem = _Problem.build(confidential, noise, equalities, inequalities, solve_for)
    proposal = noise if proposal is None else proposal
    if _is_discrete(proposal, "proposal") != problem.elimination.whole:
        raise TypeError(
            "noise and proposal must both be of whole numbers or both be continuous: a release "
            "would never have the other's values."
        )
    for number, name in ((draws, "draws"), (thin, "thin"), (chains, "chains")):
        whole_number(number, name, at_least=1)
    whole_number(tune, "tune", at_least=0)

    rng = np.random.default_rng(random_seed)
    kept = np.empty((chains, draws, problem.centre.size))
    accepted, proposed, tally = np.zeros(chains), tune + draws * thin, np.zeros(2)
    with Progress(disable=not progressbar) as bar:
        task = bar.add_task("Sampling under invariants", total=chains * proposed)
        for chain in range(chains):
            state, log_weight, done = np.zeros(problem.centre.size), problem.start(proposal), 0
            while done < proposed:
                size = min(max(_BLOCK // problem.centre.size, 1), proposed - done)
                e, log_weights, counts = problem.propose(proposal, size, rng)
                tally += counts
                moves = _accept(log_weights, np.log(rng.random(size)), log_weight)
                after_tuning = np.arange(done, done + size) >= tune
                accepted[chain] += np.sum((moves[1:] != moves[:-1]) & after_tuning)
                e = np.vstack([state, e])
                steps = np.arange(done, done + size) - tune + 1  # the n-th proposal that counts
                wanted = np.flatnonzero((steps > 0) & (steps % thin == 0))
                kept[chain, steps[wanted] // thin - 1] = e[moves[wanted + 1]]
                state = e[moves[-1]]
                log_weight = log_weight if moves[-1] == 0 else float(log_weights[moves[-1] - 1])
                done += size
                bar.update(task, completed=chain * proposed + done)
    solvable, feasible = tally / (chains * proposed)
    values = (problem.centre + kept).reshape(chains, draws, *np.shape(confidential))
    return InvariantDraws(
        draws=values.astype(np.int64) if problem.elimination.whole else values,
        acceptance_rate=accepted / (draws * thin),
        solvable_rate=float(solvable),
        feasible_rate=float(feasible),
        solved_for=problem.elimination.solved,
    )


def release_law(
    confidential: ArrayLike,
    noise: Any,
    *,
    equalities: ArrayLike | None = None,
    inequalities: Inequalities | None = None,
    radius: int = 50,
) -> ReleaseLaw:
    """Enumerate a release of whole numbers under invariants: its exact law.

    Parameters
    ----------
    confidential, noise, equalities, inequalities
        As for `sample_under_invariants`, with a discrete noise.
    radius : int
        The free cells' noise is enumerated on -radius..radius. Larger noise is neglected.

    Returns
    -------
    ReleaseLaw
        States in the flat table's order.

    Raises
    ------
    TypeError
        If the noise is continuous.
    ValueError
        If there are more than `MAX_STATES` states, and as for `sample_under_invariants`.
    """
    problem = _Problem.build(confidential, noise, equalities, inequalities)
    e = problem.enumerate(radius)
    log_density = problem.log_density(e)
    weights = np.exp(log_density - log_density.max())
    states = (problem.centre + e).astype(np.int64)
    return ReleaseLaw(states, weights / weights.sum())


def privacy_loss(
    confidential: ArrayLike,
    other: ArrayLike,
    noise: Any,
    *,
    equalities: ArrayLike | None = None,
    inequalities: Inequalities | None = None,
    radius: int = 50,
) -> float:
    """Largest log-ratio of the probabilities that two tables lead to a release, either way round.

    With distance k and budget epsilon it is at most (1 + gamma) k epsilon (Gong and Meng 2020).

    Parameters
    ----------
    confidential, other : array_like
        Two tables of whole numbers.
    noise, equalities, inequalities, radius
        As for `release_law`.

    Returns
    -------
    float
        Infinite if the tables differ in an invariant: the release then distinguishes them.

    Examples
    --------
    One record moves from one bin to the other, with Laplace noise of inverse scale 1/2 on each:

    >>> from scipy import stats
    >>> fixed_sum = [[1, 1]]
    >>> round(privacy_loss([5, 3], [4, 4], stats.dlaplace(0.5), equalities=fixed_sum), 6)
    1.0
    """
    one = _Problem.build(confidential, noise, equalities, inequalities)
    two = _Problem.build(other, noise, equalities, inequalities)
    has_shape(other, "other", np.shape(confidential), why=", as the confidential table has")
    difference = two.centre - one.centre
    if np.any(one.elimination.matrix @ difference):
        return float("inf")
    e = one.enumerate(radius + int(np.abs(difference).max()))
    log_one, log_two = one.log_density(e), two.log_density(e - difference)
    log_one -= np.logaddexp.reduce(log_one)
    log_two -= np.logaddexp.reduce(log_two)
    return float(np.abs(log_one - log_two).max())


def log_likelihood(
    released: ArrayLike,
    statistic: ArrayLike,
    noise: Any,
    *,
    equalities: ArrayLike | None = None,
    inequalities: Inequalities | None = None,
) -> np.ndarray:
    """Log-likelihood of a release under equalities, for an analyst: up to a constant.

    The noise is conditioned on A e = 0, whatever the confidential table. So the likelihood is the
    product of the cells' densities if ``A released = A statistic``, and else 0. The constant, which
    conditioning divides by, is the same for all tables.

    Parameters
    ----------
    released : array_like
        The released table.
    statistic : array_like
        Confidential tables to compare, of the shape of `released` after any leading axes.
    noise : SciPy distribution
        Law of each cell's noise, as for `sample_under_invariants`.
    equalities : (m, cells) array_like, optional
        Coefficients A of the invariants.
    inequalities : None
        Refused, with the reason why there is no such likelihood.

    Returns
    -------
    ndarray
        In the shape of the leading axes of `statistic`.

    Raises
    ------
    ValueError
        If there are inequalities, or if a shape makes no sense.
    """
    if inequalities is not None:
        raise ValueError(
            "a release under inequalities has no such likelihood: its normaliser, the probability "
            "that the noisy table satisfies them, depends on the confidential table and doesn't "
            "cancel. Leaving it out would bias the analysis. For a small table divide by it, from "
            "release_law; or ask the curator for a release under equalities only."
        )
    values, tables = np.asarray(released, dtype=float), np.asarray(statistic, dtype=float)
    lead = tables.ndim - values.ndim
    has_shape(
        tables, "statistic", (*[None] * lead, *values.shape), why=", the release's at its end"
    )
    whole = _is_discrete(noise, "noise")
    elimination = eliminate(equalities, values.size, whole=whole)
    e = (values - tables).reshape(*tables.shape[:lead], values.size)
    rounding = 1e-9 * max(1.0, float(np.abs(values).sum()))
    kept = np.all(np.abs(e @ elimination.matrix.T) <= rounding, axis=-1)
    return np.where(kept, _log_density(noise, e).sum(axis=-1), -np.inf)


@dataclass(frozen=True, eq=False)
class _Problem:
    """A confidential table, its noise, and the constraints of the release."""

    centre: np.ndarray
    noise: Any
    elimination: Elimination
    bound_matrix: np.ndarray
    slack: np.ndarray
    """B s - b: how much the confidential table has to spare."""

    @classmethod
    def build(
        cls,
        confidential: ArrayLike,
        noise: Any,
        equalities: ArrayLike | None,
        inequalities: Inequalities | None,
        solve_for: ArrayLike | None = None,
    ) -> "_Problem":
        whole = _is_discrete(noise, "noise")
        centre = np.asarray(confidential, dtype=float).ravel()
        if centre.size == 0 or not np.all(np.isfinite(centre)):
            wrong = places(~np.isfinite(np.asarray(confidential, dtype=float)))
            raise ValueError(f"confidential must be a table of finite numbers: {wrong}.")
        if whole and np.any(centre != np.rint(centre)):
            raise ValueError(
                "the noise is of whole numbers, but the confidential table isn't: use continuous "
                "noise, or round the table."
            )
        elimination = eliminate(equalities, centre.size, whole=whole, solve_for=solve_for)
        matrix, bound = _check_inequalities(inequalities, centre.size)
        slack = matrix @ centre - bound
        if np.any(slack < 0):
            raise ValueError(
                f"the confidential table violates inequality {int(np.argmax(slack < 0))}, so "
                "its release can't promise to satisfy it. Leave the inequality out."
            )
        return cls(centre, noise, elimination, matrix, slack)

    def propose(
        self, proposal: Any, size: int, rng: np.random.Generator
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Noise, the log of p / q for each, and how many are solvable, and feasible."""
        drawn = proposal.rvs(size=(size, self.centre.size), random_state=rng)
        e = np.asarray(drawn, dtype=float)
        solvable = self.elimination.complete(e)
        feasible = solvable & self.satisfied(e)
        log_weights = np.full(size, -np.inf)
        log_weights[feasible] = self.log_weights(proposal, e)[feasible]
        return e, log_weights, np.array([solvable.sum(), feasible.sum()])

    def start(self, proposal: Any) -> float:
        """Log-weight of the confidential table itself, at which the chains start."""
        log_weight = float(self.log_weights(proposal, np.zeros((1, self.centre.size)))[0])
        if not np.isfinite(log_weight):
            raise ValueError(
                "noise and proposal must both have a positive, finite density at 0: the chains "
                "start at the confidential table."
            )
        return log_weight

    def log_weights(self, proposal: Any, e: np.ndarray) -> np.ndarray:
        """Log of p(e) / q(e_free), the ratio on which a proposal is accepted."""
        free = self.elimination.free
        return self.log_density(e) - _log_density(proposal, e)[:, free].sum(axis=1)

    def log_density(self, e: np.ndarray) -> np.ndarray:
        """Log of the noise's density without restriction."""
        return np.asarray(_log_density(self.noise, e).sum(axis=-1))

    def satisfied(self, e: np.ndarray) -> np.ndarray:
        """Whether the inequalities hold."""
        return np.all(e @ self.bound_matrix.T >= -self.slack, axis=1)

    def enumerate(self, radius: int) -> np.ndarray:
        """All noise of whole numbers that keeps the invariants, shape (states, cells)."""
        if not self.elimination.whole:
            raise TypeError("only noise of whole numbers can be enumerated, this is continuous.")
        free, cells = self.elimination.free, self.centre.size
        side = 2 * index(radius) + 1
        if index(radius) < 1 or side**free.size > MAX_STATES:
            raise ValueError(
                f"{free.size} free cells and radius {radius} make {side}^{free.size} states, and "
                f"from 1 to {MAX_STATES} are enumerated. Use a smaller table or radius."
            )
        e = np.zeros((side**free.size, cells))
        e[:, free] = np.indices((side,) * free.size).reshape(free.size, len(e)).T - radius
        keep = self.elimination.complete(e)
        return np.asarray(e[keep & self.satisfied(e)])


def _accept(log_weights: np.ndarray, log_uniform: np.ndarray, log_weight: float) -> np.ndarray:
    """Go through the proposals, and accept one if log u < its log-weight - the state's.

    Returned is, before and after each, which proposal the state is at; 0 before the first is
    accepted.
    """
    moves, at = [0], 0
    tried = zip(log_weights.tolist(), log_uniform.tolist(), strict=True)
    for i, (proposed, threshold) in enumerate(tried, start=1):
        if threshold < proposed - log_weight:
            at, log_weight = i, proposed
        moves.append(at)
    return np.array(moves, dtype=np.int64)


def _is_discrete(law: Any, name: str) -> bool:
    """Whether a law is of whole numbers."""
    for method in ("logpmf", "logpdf"):
        if hasattr(law, method) and hasattr(law, "rvs"):
            return method == "logpmf"
    raise TypeError(
        f"{name} must be a distribution as SciPy has them, with rvs and logpmf or logpdf, such as "
        f"scipy.stats.dlaplace(0.5), got {law!r}."
    )


def _log_density(law: Any, e: np.ndarray) -> np.ndarray:
    with np.errstate(divide="ignore"):  # where the density is 0, its log is -inf
        density = law.logpmf(e) if _is_discrete(law, "noise") else law.logpdf(e)
    return np.asarray(density, dtype=float)


def _check_inequalities(
    inequalities: Inequalities | None, cells: int
) -> tuple[np.ndarray, np.ndarray]:
    if inequalities is None:
        return np.zeros((0, cells)), np.zeros(0)
    if not isinstance(inequalities, tuple | list) or len(inequalities) != 2:
        raise ValueError(
            "inequalities must be a pair (B, b), for B s >= b. Non-negative cells are "
            f"(np.eye({cells}), np.zeros({cells}))."
        )
    matrix, bound = (np.asarray(part, dtype=float) for part in inequalities)
    if matrix.ndim != 2 or matrix.shape[1] != cells or bound.shape != matrix.shape[:1]:
        raise ValueError(
            f"inequalities (B, b) must have shapes (k, {cells}) and (k,), got {matrix.shape} and "
            f"{bound.shape}."
        )
    return matrix, bound
