"""The paper's example 3: regression coefficients from nine noisy sums."""

import numpy as np
import regression
from _markdown import numbers, table
from _paper_admissions import PRINTED, summary_of_draws
from regression import COEFFICIENTS


def sample(draws=24_000, tune=1_000):
    """As in the paper, 24,000 draws after 1,000 to tune; but four chains, the first one for it."""
    return regression.sample(draws, tune, chains=4)


def coefficients_table(draws):
    """Each coefficient by each analysis; ``draws`` has shape (chain, draw, 3)."""
    naive = regression.summary_of_normal(*regression.naive())
    confidential = regression.summary_of_normal(*regression.confidential())
    rows = []
    for k, name in enumerate(COEFFICIENTS):
        for source, (*shown, ess) in (
            ("printed, one chain", PRINTED["example_3"][name]),
            ("sampled, one chain", summary_of_draws(draws[:1, :, k])),
            ("sampled, four chains", summary_of_draws(draws[:, :, k])),
        ):
            error = shown[1] / np.sqrt(ess)
            rows.append([name, source, *numbers(shown, 2), f"{ess:.0f}", f"{error:.2f}"])
        rows.append([name, "naive", *numbers(naive[k], 2), "", ""])
        rows.append([name, "confidential", *numbers(confidential[k], 2), "", ""])
    return table(["", "analysis", "mean", "sd", "5 %", "95 %", "ESS", "error of mean"], rows)


def naive_table():
    """Means of the coefficients, by the treatment of an indefinite x'x."""
    xx, xy = regression.cross_products(regression.RELEASED)
    inverse = np.linalg.inv(xx)
    nearest = regression.nearest_positive_semidefinite
    paper = nearest(inverse) @ xy
    units = np.array([regression.WIDTH, 1, 1])
    # x'x itself replaced, in the records' units; it is singular then, and needs the prior.
    scaled = np.array([1, regression.WIDTH, regression.WIDTH])
    information = nearest(xx * np.outer(scaled, scaled)) / regression.NOISE_VARIANCE
    precision = information + np.eye(3) / regression.PRIOR_SD**2
    product = xy * scaled * regression.WIDTH / regression.NOISE_VARIANCE
    clipped = np.linalg.solve(precision, product)
    rows = [
        ["nothing", *numbers(inverse @ xy * units, 2)],
        ["inverse made semi-definite", *numbers(paper * units, 2)],
        ["the same, left in units of the release (the paper's code)", *numbers(paper, 2)],
        ["x'x made semi-definite, prior N(0, 2²)", *numbers(clipped, 2)],
        ["(the records)", *numbers(regression.confidential()[0], 2)],
    ]
    return table(["what is done", *COEFFICIENTS], rows)


def eigenvalues_table():
    """Eigenvalues of x'x as released, and of its inverse."""
    xx, _ = regression.cross_products(regression.RELEASED)
    rows = [
        ["x'x, as released", *numbers(np.linalg.eigvalsh(xx), 2)],
        ["its inverse", *numbers(np.linalg.eigvalsh(np.linalg.inv(xx)), 2)],
    ]
    return table(["eigenvalues of", "smallest", "", "largest"], rows)
