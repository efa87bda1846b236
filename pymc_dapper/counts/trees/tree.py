"""CountTree: latent counts on a tree, from noisy counts at its nodes."""

from collections.abc import Callable
from concurrent.futures import Executor
from functools import wraps
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from pymc_dapper import checks
from pymc_dapper.counts.trees import weights
from pymc_dapper.counts.trees.forest import (
    LARGEST_DROP,
    Asked,
    ContradictionError,
    Forest,
    Releases,
    Solved,
)
from pymc_dapper.counts.trees.priors import Prior, read_prior

KINDS = {
    "discrete_gaussian": weights.DISCRETE_GAUSSIAN,
    "discrete_laplace": weights.DISCRETE_LAPLACE,
    "gaussian": weights.GAUSSIAN,
    "laplace": weights.LAPLACE,
}
DISCRETE = (weights.EXACT, weights.DISCRETE_GAUSSIAN, weights.DISCRETE_LAPLACE)


class Marginals(NamedTuple):
    """The posterior of each node's count. Nodes are in the order of the tree's ``parent``."""

    mean: np.ndarray
    """Shape (number of nodes,)."""
    sd: np.ndarray
    """Standard deviation, shape (number of nodes,)."""
    quantiles: np.ndarray
    """Int64, shape (number of nodes, number of quantiles): the smallest counts with these
    cumulative probabilities."""
    below: np.ndarray | None
    """Probability of fewer than the counts asked about, shape (number of nodes,)."""
    up_to: np.ndarray | None
    """Probability of these counts or fewer, shape (number of nodes,)."""


def _tells_of_memory[**P, R](method: Callable[P, R]) -> Callable[P, R]:
    """Make a tree's method report exhausted memory, and what needs less."""

    @wraps(method)
    def telling(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return method(*args, **kwargs)
        except MemoryError as error:
            n = getattr(args[0], "_n_nodes", None)
            raise MemoryError(
                f"memory ran out for a tree{'' if n is None else f' of {n:,} nodes'}"
                f"{f': {error}' if str(error) else ''}. Keep it in files, with a file for each "
                "subtree: pmd.solve_tree_files holds one of them at a time. Or take fewer draws "
                "at once"
            ) from error

    return telling


class CountTree:
    """The exact posterior of counts on a tree, given noisy releases at its nodes, without a chain.

    The count of a node is the sum of its children's: blocks, tracts, counties, a state. Any node
    may have a released noisy count, or an exact one. The posterior is computed by convolving
    messages from the leaves up, and its draws are independent. The cost is linear in the number of
    nodes.

    Parameters
    ----------
    parent : array_like of int, shape (number of nodes,)
        The parent of each node, -1 for a root. There may be several.
    released : array_like of float, shape (number of nodes,)
        The released value of each node; nan for none.
    scale : float or array_like, shape (number of nodes,)
        Scale of the noise: sigma of Gaussian noise, as in :class:`DiscreteGaussianMechanism`, or
        the scale of Laplace noise. With scale 0, the count is known exactly (an invariant).
    noise : str or array_like of str, default "discrete_gaussian"
        The noise, or that of each node: "discrete_gaussian", "discrete_laplace", "gaussian" or
        "laplace".
    prior : "flat", array_like or frozen distribution of scipy.stats, default "flat"
        The prior of counts without children, independent of each other: "flat" on 0, 1, 2, ...; or
        one pmf for all, by the logarithms of the probabilities of 0, 1, 2, ...; or a distribution
        such as ``scipy.stats.poisson(rates)``, whose parameters are numbers or arrays with one for
        each leaf, in the order of the nodes.
    names : sequence, optional
        Names of the nodes, for messages.

    Raises
    ------
    ValueError
        If the parents don't form a tree; if a scale is negative; if a released value is impossible
        for all counts; or if a count is unbounded.

    Notes
    -----
    Messages are pmfs on windows of counts. Windows cut off at most ``tail_mass``, 1e-12, of the
    posterior. This bound is computed from the messages, and windows are widened until it holds.

    Several releases of one count are given as a chain: a node with one child has the same count.
    Multinomial counts given their probabilities are Poisson counts given an exact total.

    References
    ----------
    Pearl, J. (1982). Reverend Bayes on inference engines: a distributed hierarchical approach.
    AAAI-82. Messages on trees.

    Cumings-Menon, R., Ashmead, R., Kifer, D., et al. (2024). Geographic spines in the 2020 Census
    disclosure avoidance system. Journal of Privacy and Confidentiality 14(3). What is released.

    Examples
    --------
    >>> tree = pmd.CountTree([-1, 0, 0], released=[10, 3, np.nan], scale=[0, 2.0, 1.0])
    >>> tree.draw(1000, random_seed=1)
    """

    @_tells_of_memory
    def __init__(
        self,
        parent: ArrayLike,
        released: ArrayLike,
        scale: ArrayLike,
        *,
        noise: Any = "discrete_gaussian",
        prior: Any = "flat",
        names: Any = None,
    ):
        parents = read_parents(parent)
        self._n_nodes = n = parents.size
        self._names = None if names is None else checks.as_array(names)
        if self._names is not None:
            checks.has_shape(self._names, "names", (n,), why=", one for each node")
        releases = read_releases(released, scale, noise, n, self._name)
        is_leaf = np.ones(n, dtype=bool)
        is_leaf[parents[parents >= 0]] = False
        self._forest = self._make(parents, releases, is_leaf, prior)
        endless = self._forest.endless
        if endless is not None:
            raise ValueError(
                f"{self._name(endless)} has no limit: its prior is flat, and neither it nor a sum "
                "above it was released. Give a prior, or release something above it"
            )
        self._solved: Solved | None = None

    def _make(
        self, parents: np.ndarray, releases: Releases, is_leaf: np.ndarray, prior: Any
    ) -> Forest:
        def forest(read: Prior) -> Forest:
            laws = np.zeros((3, parents.size))
            laws[:, is_leaf] = read[:3]
            return Forest(parents, releases, Prior(*laws, read.tables))  # type: ignore[call-arg]

        n_leaves = int(is_leaf.sum())
        flat = forest(read_prior("flat", n_leaves, np.zeros(0)))
        if isinstance(prior, str) and prior == "flat":
            return flat
        largest = np.full(parents.size, weights.ENDLESS)
        named = flat.origin >= 0
        largest[flat.origin[named]] = flat.nodes.highest[named]
        return forest(read_prior(prior, n_leaves, largest[is_leaf]))

    def _name(self, node: int) -> str:
        return f"node {node}" if self._names is None else f"node {self._names[node]!s}"

    def __repr__(self) -> str:
        """Summarise the tree."""
        return f"<CountTree: {self._forest.size} nodes>"

    @_tells_of_memory
    def _up(self, executor: Executor | None) -> Solved:
        check_executor(executor)
        if self._solved is None:
            try:
                self._solved = self._forest.solve(executor)
            except ContradictionError as error:
                raise ValueError(
                    f"no counts fit the release at {self._name(error.node)}, above it and below "
                    f"it, or only with a probability of less than exp(-{LARGEST_DROP:.0f}). Look "
                    "for a wrong scale, a wrong parent or a wrong exact count"
                ) from None
        return self._solved

    def log_evidence(self, *, executor: Executor | None = None) -> float:
        """Return the log-probability of the release, with counts marginalised.

        Parameters
        ----------
        executor : Executor, optional
            Where subtrees are computed: of ``concurrent.futures``, or Dask's
            ``Client.get_executor()``. Threads are enough on one machine.

        Returns
        -------
        float
            The logarithm. With a flat prior its constant is arbitrary: each count has weight 1.

        Raises
        ------
        ValueError
            If no counts fit the release; names the node.
        """
        return self._up(executor).log_evidence

    @property
    def tail_mass(self) -> float:
        """Bound on the share of the posterior that all windows together neglect."""
        return self._up(None).total

    @_tells_of_memory
    def marginals(
        self,
        quantiles: ArrayLike = (0.025, 0.5, 0.975),
        *,
        at: ArrayLike | None = None,
        executor: Executor | None = None,
    ) -> Marginals:
        """Summarise the posterior of each node's count.

        Parameters
        ----------
        quantiles : array_like of float, default (0.025, 0.5, 0.975)
            Which quantiles, in ascending order.
        at : array_like of int, shape () or (number of nodes,), optional
            Counts whose probability is computed: 0 for that of an empty block.
        executor : Executor, optional
            As in :meth:`log_evidence`.

        Returns
        -------
        Marginals
            Means, standard deviations, quantiles, and probabilities if asked for.

        Raises
        ------
        ValueError
            If no counts fit the release; names the node.
        """
        shares = read_quantiles(quantiles)
        counts = np.zeros(0)
        if at is not None:
            counts = checks.real_numbers(at, "at")
            checks.has_shape(counts, "at", (), (self._forest.size,))
            counts = np.broadcast_to(counts, self._forest.size)
        found = self._forest.summarise(self._up(executor), Asked(shares, counts), executor)
        below, up_to = (None, None) if at is None else found.below.T
        return Marginals(*found[:3], below, up_to)

    @_tells_of_memory
    def pmf(self, node: int) -> tuple[int, np.ndarray]:
        """Return the posterior pmf of a node's count.

        Parameters
        ----------
        node : int
            The node's number.

        Returns
        -------
        lowest : int
            The least count of the window.
        pmf : ndarray of float64
            Probabilities of it and of the counts that follow. Those below 1e-14 may be 0.

        Raises
        ------
        ValueError
            If there is no such node; or if no counts fit the release.
        """
        node = checks.whole_number(node, "node", at_least=0, at_most=self._forest.size - 1)
        return self._forest.pmf(self._up(None), node)

    @_tells_of_memory
    def draw(
        self, draws: int = 1, *, random_seed: Any = None, executor: Executor | None = None
    ) -> np.ndarray:
        """Draw all counts from their joint posterior, independently.

        Parameters
        ----------
        draws : int, default 1
            Number of draws.
        random_seed : int, Generator, ..., optional
            The same seed gives the same draws with any executor.
        executor : Executor, optional
            As in :meth:`log_evidence`.

        Returns
        -------
        ndarray of int64, shape (draws, number of nodes)
            The counts. Those of children add up to their parent's in each draw.

        Raises
        ------
        ValueError
            If no counts fit the release; names the node.
        """
        draws = checks.whole_number(draws, "draws", at_least=1)
        rng = checks.random_generator(random_seed, "random_seed")
        return self._forest.draw(self._up(executor), draws, rng, executor)


def check_executor(executor: Any) -> None:
    """Refuse what isn't an executor or None."""
    if executor is not None and not hasattr(executor, "submit"):
        raise TypeError(f"executor must be an executor, or None, got {checks.shown(executor)}")


def read_releases(
    released: ArrayLike, scale: ArrayLike, noise: Any, n: int, name: Callable[[int], str]
) -> Releases:
    """Check the releases of n nodes; messages use the nodes' names."""
    values = checks.real_numbers(released, "released")
    checks.has_shape(values, "released", (n,), why=", one for each node: nan for none")
    scales = checks.real_numbers(scale, "scale")
    checks.has_shape(scales, "scale", (), (n,))
    scales = np.broadcast_to(scales, n)
    known = ~np.isnan(values)
    kinds = np.where(known, _kinds(noise, n), weights.NONE)
    kinds[known & (scales == 0)] = weights.EXACT
    fractional = known & (values != np.round(values)) & np.isin(kinds, DISCRETE)
    for wrong, why in (
        (known & ~((scales >= 0) & (scales < np.inf)), "has a scale that isn't a number from 0 on"),
        (np.isinf(values), "has an infinite released value"),
        (
            fractional,
            "has a released value that isn't whole, though its noise is discrete or none: no count "
            "leads there",
        ),
        ((kinds == weights.EXACT) & (values < 0), "has a negative exact count"),
        (np.abs(values) > weights.ENDLESS, "has a released value beyond 2**53"),
    ):
        if wrong.any():
            raise ValueError(f"{name(int(np.flatnonzero(wrong)[0]))} {why}")
    return Releases(kinds, np.where(known, values, 0.0), scales)


def read_quantiles(quantiles: ArrayLike) -> np.ndarray:
    """Check which quantiles are wanted."""
    shares = np.atleast_1d(checks.real_numbers(quantiles, "quantiles"))
    if shares.ndim > 1 or not np.all((shares > 0) & (shares < 1)) or np.any(np.diff(shares) < 0):
        raise ValueError(
            "quantiles must be between 0 and 1 and in ascending order, got "
            f"{checks.shown(quantiles)}"
        )
    return shares


def read_parents(parent: ArrayLike) -> np.ndarray:
    """Check the parent of each node."""
    values = checks.real_numbers(parent, "parent")
    n = values.size
    if values.ndim != 1 or not np.array_equal(values, np.round(values)):
        raise ValueError("parent must be the numbers of nodes, in one dimension")
    if np.any((values < -1) | (values >= n)):
        wrong = values[(values < -1) | (values >= n)][0]
        raise ValueError(f"parent must be -1 for roots, or from 0 to {n - 1}, got {wrong:g}")
    return values.astype(np.int64)


def _kinds(noise: Any, n: int) -> np.ndarray:
    names = checks.as_array(noise)
    if names.dtype.kind != "U" or names.shape not in ((), (n,)):
        raise ValueError(
            f"noise must be one of {', '.join(KINDS)}, or such a name for each node, got "
            f"{checks.shown(noise)}"
        )
    each, which = np.unique(names, return_inverse=True)
    unknown = set(each.tolist()) - set(KINDS)
    if unknown:
        raise ValueError(f"noise must be one of {', '.join(KINDS)}, got {sorted(unknown)[0]!r}")
    return np.broadcast_to(np.array([KINDS[name] for name in each.tolist()])[which], n)
