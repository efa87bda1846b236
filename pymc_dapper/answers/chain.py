"""Tables of which released sums overlap: a chain, by a model in PyMC."""

import logging
from collections.abc import Sequence

import numpy as np
import pymc as pm
import pytensor.tensor as pt
from arviz_stats import ess, rhat
from pytensor.tensor.variable import TensorVariable

from pymc_dapper.answers.prior import Prior
from pymc_dapper.answers.smooth import LIMITS
from pymc_dapper.answers.table import Table
from pymc_dapper.answers.windows import LARGEST
from pymc_dapper.counts.reading import invariant
from pymc_dapper.sampling import sample

FLAT = 1e-12
"""Probability of the geometric law in the place of a flat one: a count of a million weighs a
millionth less than 0."""
CHAINS = 4


def draw_chain(
    table: Table,
    known: Sequence[tuple[np.ndarray, np.ndarray]],
    prior: Prior,
    start: np.ndarray,
    draws: int,
    rng: np.random.Generator,
) -> tuple[np.ndarray, str]:
    """Draw all cells of a table by a chain.

    Parameters
    ----------
    table : Table
        The table.
    known : sequence of (ndarray, ndarray)
        Sums that are known: the number of the sum that each cell is a part of, and the sums.
    prior : Prior
        The prior of the cells.
    start : ndarray of int64, shape (cells,)
        Likely counts.
    draws : int
        Number of draws.
    rng : Generator
        Seeds the chain.

    Returns
    -------
    counts : ndarray of int64, shape (cells, draws)
        The draws.
    method : str
        What is to be told of them.
    """
    totals = [int(values[0]) for of, values in known if not of.any()]
    with pm.Model() as model:
        cells = _cells(table.size, prior, totals, start)
        if (prior.lowest, prior.highest) != (0, LARGEST):
            within = pt.ge(cells, prior.lowest) & pt.le(cells, prior.highest)
            pm.Potential("limits", pt.switch(within, np.asarray(0.0), np.asarray(-np.inf)))
        for k, (of, values) in enumerate(known):
            if of.any():
                invariant(f"known {k}", _sums(cells, of), values)
        for k, (query, of) in enumerate(zip(table.queries, table.groups, strict=True)):
            statistic = _sums(cells, of).reshape(np.shape(query.values))
            query.mechanism.potential(f"released {k}", statistic, released=query.values)
    own = -(-draws // CHAINS)
    log = logging.getLogger("pymc")
    level = log.level
    log.setLevel(logging.ERROR)  # what it says of steps and draws is told by the method
    try:
        idata = sample(
            own,
            tune=max(500, own // 2),
            chains=CHAINS,
            cores=1,
            model=model,
            random_seed=int(rng.integers(2**31)),
            progressbar=False,
        )
    finally:
        log.setLevel(level)
    found = idata.posterior["cells"]
    worst = float(rhat(found).max())
    least = float(ess(found, method="bulk").min())
    counts = found.values.reshape(CHAINS * own, table.size)[:draws].T.astype(np.int64)
    told = f"R-hat is at most {worst:.2f}, with at least {least:,.0f} effective draws of {draws:,}"
    doubt = "" if worst < 1.02 and least > 0.05 * draws else ": take more draws"
    return counts, f"a chain, as released sums overlap; {told}{doubt}"


def _cells(n: int, prior: Prior, totals: list[int], start: np.ndarray) -> TensorVariable:
    """Add the cells to the model in context, under their prior."""
    if prior.kind == "smooth":
        spread = pm.HalfCauchy("spread", 1.0)
        alpha = pm.Deterministic("alpha", 1 / spread**2)
        if totals:
            return pm.DirichletMultinomial("cells", n=totals[0], a=alpha * np.ones(n))
        mu = pt.exp(pm.Uniform("log_mu", *LIMITS[1], initval=np.log(start.mean() + 1.0)))
        return pm.NegativeBinomial("cells", mu=mu, alpha=alpha, shape=n, initval=start)
    if totals:
        return pm.DirichletMultinomial("cells", n=totals[0], a=np.ones(n))
    return pm.NegativeBinomial("cells", n=1, p=FLAT, shape=n, initval=start)


def _sums(cells: TensorVariable, of: np.ndarray) -> TensorVariable:
    """Sum the cells of each group."""
    groups = int(of.max()) + 1
    if np.array_equal(of, np.arange(of.size)):
        return cells
    return pt.stack([cells[np.flatnonzero(of == k)].sum() for k in range(groups)])
