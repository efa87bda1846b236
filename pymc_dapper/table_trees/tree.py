"""TableTree: tables of people of all areas of a tree, from noisy counts by crossing queries."""

import warnings
from collections.abc import Mapping
from concurrent.futures import Executor
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from pymc_dapper import checks
from pymc_dapper.counts.trees.tree import check_executor
from pymc_dapper.table_trees import given, start
from pymc_dapper.table_trees.chain import Margin, Plan, moves_of, run
from pymc_dapper.table_trees.results import TableDraws, begin, read_so_far, write_summaries

MISFIT = 6.0
"""Standard errors from which on a warning is given."""


class TableTree:
    """A table of people of each area of a tree, given noisy counts of crossing queries.

    Areas are parts of one another: blocks, tracts, counties, a state. The people of each block are
    in cells, such as age by race. Each query counts people by classes of cells, with noise, in some
    areas or all. :meth:`sample` draws the tables of all blocks together, and keeps the margins that
    are asked for.

    Parameters
    ----------
    parent : array_like of int, shape (areas,)
        The area that each is a part of; -1 for none. Areas without parts are blocks.
    queries : dict of str to TableQuery
        What was released, by name.
    prior : "flat", array_like or frozen distribution of scipy.stats, default "flat"
        The prior of each block's total, as in :class:`CountTree`.
    concentration : float or array_like, shape (cells,), optional
        Parameters of the Dirichlet prior of proportions. One over the number of cells by default:
        together they weigh as much as one person.
    shared : int, optional
        The blocks of an area at this depth have the same unknown proportions; roots have depth 0.
        By default those of an area just above the blocks.
    impossible : array_like of bool, shape (cells,) or (areas, cells), optional
        Cells that must be empty (structural zeros).
    names : sequence, optional
        Names of areas, for messages and results.

    Raises
    ------
    ValueError
        If queries don't fit the areas or each other; if no totals fit the release, such as exact
        ones that contradict each other; or if a total is unbounded.

    See Also
    --------
    CountTree : One count for each area, exactly and without a chain.

    Notes
    -----
    The prior: a block's total n follows ``prior``. Each of its people is in cell c with probability
    p[c], and p is shared by all blocks of a group, with p ~ Dirichlet(concentration). The p are
    marginalised. So in the prior, blocks of a group differ in their proportions by chance alone,
    and groups are independent.

    There are four Metropolis moves. Two cells of a group exchange people, as many as the prior and
    the noise of the group's area and of those above allow. People move to another block, as many as
    the two totals allow. Two people of two blocks change places, where a total between them is
    known to within a person. People come and go, if no exact total forbids it. Time grows with
    people and with the noisy counts that change. Memory is 6 bytes for each cell of a block, and 8
    for each noisy count.

    Examples
    --------
    >>> released = [[90, 30], [41, 17], [55, 8]]
    >>> query = pmd.TableQuery([0, 1], released, scale=5.0)
    >>> tree = pmd.TableTree([-1, 0, 0], {"age": query}, prior=stats.poisson(60))
    >>> found = tree.sample(keep={"age": ("age", [0, 1, 2])}, random_seed=1)
    """

    def __init__(
        self,
        parent: ArrayLike,
        queries: Mapping[str, Any],
        *,
        prior: Any = "flat",
        concentration: Any = None,
        shared: int | None = None,
        impossible: Any = None,
        names: Any = None,
    ):
        self._areas = areas = given.read_geography(parent)
        n = areas.parent.size
        self._names = np.arange(n) if names is None else checks.as_array(names)
        if self._names.shape != (n,) or np.ma.is_masked(names):
            raise ValueError(
                f"names must be as many as areas, {n}, got {checks.shown(self._names)}"
            )
        self._queries = given.read_queries(queries, n)
        self._n_cells = n_cells = np.size(next(iter(self._queries.values())).classes)
        totals = given.released_totals(self._queries, n)
        group, together = given.read_shared(shared, areas)
        alpha = given.read_alpha(concentration, impossible, areas, together, n_cells)
        groups = (group, together, alpha)
        self._fixed, self._released = given.to_kernels(areas, self._queries, totals, groups, prior)
        self._tree = start.tree_of_totals(areas, self._queries, totals, prior, names)
        self._moves = moves_of(self._fixed, totals.variance)

    def __repr__(self) -> str:
        """Summarise the tree."""
        n, blocks = self._areas.parent.size, self._areas.leaf.size
        return f"<TableTree: {n} areas, {blocks} of them blocks, of {self._n_cells} cells>"

    def _margins(self, keep: Any) -> dict[str, Margin]:
        if not isinstance(keep, Mapping) or not keep:
            raise TypeError(
                "keep must be a dict of (query, areas) by name, where the query is a name or the "
                f"class of each cell; got {checks.shown(keep)}"
            )
        found = {}
        for name, wanted in keep.items():
            if checks.text(name, "names in keep").startswith("_") or "/" in name:
                raise ValueError(f"keep: a name must not begin with '_' or have '/', got {name!r}")
            try:
                query, areas = wanted
            except (TypeError, ValueError):
                raise TypeError(
                    f"keep[{name!r}] must be (query, areas), got {checks.shown(wanted)}"
                ) from None
            if isinstance(query, str):
                checks.known([query], self._queries, f"keep[{name!r}]: there is no query")
                query = self._queries[query].classes
            n, cells = self._areas.parent.size, self._n_cells
            with checks.about(f"keep[{name!r}]"):
                classes = checks.whole_numbers(query, "classes", at_least=-1, at_most=cells - 1)
                checks.has_shape(classes, "classes", (cells,), why=", one for each cell")
                which = checks.whole_numbers(areas, "areas", at_least=0, at_most=n - 1, vector=True)
                if np.unique(which).size < which.size or classes.max() < 0:
                    raise ValueError("an area is named twice, or no cell is counted")
            rows = np.full(n, -1)
            rows[which] = np.arange(which.size)
            found[name] = Margin(rows, classes, which)
        return found

    def sample(
        self,
        draws: int = 1000,
        *,
        keep: Mapping[str, Any],
        tune: int = 200,
        chains: int = 2,
        thin: int = 1,
        random_seed: Any = None,
        executor: Executor | None = None,
        results: str | Path | None = None,
        every: int = 100,
    ) -> TableDraws:
        """Draw tables, and keep margins.

        Parameters
        ----------
        draws : int, default 1000
            Draws of each chain.
        keep : dict of str to (query, areas)
            The margins to keep, by a name: counts of some areas by the classes of a query. The
            query is a name, or the class of each cell; areas are numbers.
        tune : int, default 200
            Sweeps before the first draw.
        chains : int, default 2
            Number of chains.
        thin : int, default 1
            Sweeps for each draw.
        random_seed : int, Generator, ..., optional
            The same seed gives the same draws with any executor. Needed to continue a run.
        executor : Executor, optional
            Where chains run: of ``concurrent.futures``, or Dask's ``Client.get_executor()``.
        results : path, optional
            A directory. Draws are written to it, not kept in memory: 4 bytes for each number. If a
            run is killed, the same call continues it, with the same draws. At the end, intervals
            are written to a Parquet file by margin; :meth:`so_far` does it before.
        every : int, default 100
            Number of draws after which the state is written again.

        Returns
        -------
        TableDraws
            The draws of each margin, with their summaries.

        Warns
        -----
        UserWarning
            If released counts are further from the draws than noise explains.

        Raises
        ------
        ValueError
            If ``results`` has draws of other settings.
        """
        plan = Plan(
            checks.whole_number(draws, "draws", at_least=1),
            checks.whole_number(tune, "tune", at_least=0),
            checks.whole_number(thin, "thin", at_least=1),
            self._margins(keep),
            None if results is None else Path(checks.text(str(results), "results")),
            checks.whole_number(every, "every", at_least=1),
        )
        n_chains = checks.whole_number(chains, "chains", at_least=1)
        entropy = int(checks.random_generator(random_seed, "random_seed").integers(2**63))
        check_executor(executor)
        if plan.folder is not None:
            begin(plan, n_chains, entropy, (self._fixed, self._released))
        tasks = []
        for chain, seed in enumerate(np.random.SeedSequence(entropy).spawn(n_chains)):
            of_start, of_moves = seed.spawn(2)
            rng = np.random.default_rng(of_start)
            first = start.first_people(rng, self._areas, self._tree, self._fixed)
            tasks.append((chain, self._fixed, self._released, first, of_moves, self._moves, plan))
        found = list((map if executor is None else executor.map)(run, *zip(*tasks, strict=True)))
        self._warn_of_misfit(np.min([chain.misfit for chain in found], axis=0))
        drawn = TableDraws(
            {name: [chain.draws[name] for chain in found] for name in plan.margins},
            {name: margin.areas for name, margin in plan.margins.items()},
            np.sum([chain.made for chain in found], axis=0),
        )
        if plan.folder is not None:
            write_summaries(plan.folder, drawn, self._names)
        return drawn

    def so_far(self, results: str | Path, *, keep: Mapping[str, Any]) -> TableDraws:
        """Return what a run has drawn until now, and write its intervals to files.

        Parameters
        ----------
        results : path
            The directory of a run of :meth:`sample`, which may go on in another process.
        keep : dict of str to (query, areas)
            As it was given to :meth:`sample`.

        Returns
        -------
        TableDraws
            From each chain, as many draws as the shortest one has.

        Raises
        ------
        ValueError
            If there are no draws yet, or if they are of another tree or of other margins.
        """
        folder = Path(checks.text(str(results), "results"))
        drawn = read_so_far(folder, self._margins(keep), (self._fixed, self._released))
        write_summaries(folder, drawn, self._names)
        return drawn

    def _warn_of_misfit(self, misfit: np.ndarray) -> None:
        if misfit.max() < MISFIT:
            return
        depth, q = np.unravel_index(np.argmax(misfit), misfit.shape)
        name = list(self._queries)[q]
        warnings.warn(
            f"queries[{name!r}]: areas at depth {depth} differ from their released counts by more "
            f"than noise of this scale explains: by {misfit.max():.0f} standard errors of the sum "
            "of squares. Either the scale is too small; or areas that share proportions differ in "
            "them (give shared= a deeper level); or prior= is wrong; or chains are too short",
            stacklevel=3,
        )
