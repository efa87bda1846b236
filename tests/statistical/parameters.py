"""Parameters drawn in NumPy given the records, so that nothing but the records' step is compiled.

Each model's conditional is written down once more here: exact draws where it has a name, slice
sampling elsewhere.
"""

import numpy as np
from pymc.step_methods import BlockedStep


class Given(BlockedStep):
    """Draws parameters given all other variables.

    Parameters
    ----------
    variables : list
        The parameters.
    draw : callable
        ``draw(rng, point)`` returns a value for each, as the chain has it.
    """

    def __init__(self, variables, draw, *, model, **_):
        self.vars = [model.rvs_to_values[x] for x in variables]
        self._draw = draw

    def step(self, point):
        drawn = self._draw(self.rng, point)
        new = {value.name: np.asarray(x) for value, x in zip(self.vars, drawn, strict=True)}
        return point | new, [{}]


def slice_sample(rng, x, log_density, width):
    """One move of slice sampling: stepping out, and shrinkage (Neal 2003, figures 3 and 5)."""
    level = log_density(x) - rng.exponential()
    low = x - width * rng.random()
    high = low + width
    while log_density(low) > level:
        low -= width
    while log_density(high) > level:
        high += width
    while True:
        moved = rng.uniform(low, high)
        if log_density(moved) > level:
            return moved
        low, high = (moved, high) if moved < x else (low, moved)


def regression(design, prior_sd, sd=1.0):
    """Draw the coefficients of normal records, themselves normal around zero."""
    precision = design.T @ design / sd**2 + np.eye(design.shape[1]) / np.square(prior_sd)
    cov = np.linalg.inv(precision)
    root = np.linalg.cholesky(cov)

    def draw(rng, point):
        return cov @ design.T @ point["record"] / sd**2 + root @ rng.normal(size=len(cov))

    return draw


def counted(point):
    """Records of four categories, as counts."""
    return np.bincount(point["record"], minlength=4)


def probabilities(model, counts):
    """A step for probabilities `p`, uniform before `counts(point)` are seen."""

    def draw(rng, point):
        seen = counts(point)
        log_p = np.log(rng.dirichlet(1 + seen))
        return [log_p[:-1] - log_p.mean()]

    return Given([model["p"]], draw, model=model)
