"""Loops written by hand in numba, one for each model: the floor that a general sampler is held to.

Each makes the draws that the package makes, records first and parameters after them, and knows its
model by heart. A loop returns the parameters, of shape (draws, number of parameters). The sweeps
over the records stand by themselves, so that they can be timed beside DapperStep's.
"""

import numpy as np
from numba import njit

# They call no model's code, so numba's own cache is safe for them.
compiled = njit(cache=True)

# Example 1: records with few values, each with public answers of its own --------------------------


@compiled
def draw_records(rng, p, answers, channel, record):
    """Each record from its conditional distribution, given the answers: which of four it is."""
    weights = np.empty((4, 4))
    totals = np.empty(4)
    for answer in range(4):
        for k in range(4):
            weights[answer, k] = p[k] * channel[k, answer]
        totals[answer] = weights[answer].sum()
    for i in range(len(answers)):
        record[i] = _draw_category(rng, weights[answers[i]], totals[answers[i]])


@compiled
def randomised_response(rng, draws, answers, channel):
    kept = np.empty((draws, 4))
    p = np.full(4, 0.25)
    record = np.empty(len(answers), dtype=np.int64)
    for d in range(draws):
        draw_records(rng, p, answers, channel, record)
        _draw_dirichlet(rng, _count(record), p)
        kept[d] = p
    return kept


# Example 2: a table of counts with discrete Gaussian noise ----------------------------------------


@compiled
def sweep_table(rng, p, record, released, sigma):
    """Metropolis on categories: a change of two counts by one decides."""
    counts = _count(record)
    total = p.sum()
    for i in range(len(record)):
        new, old = _draw_category(rng, p, total), record[i]
        threshold = -rng.standard_exponential()
        if new == old:
            continue
        gain = (
            (released[old] - counts[old]) ** 2
            - (released[old] - counts[old] + 1) ** 2
            + (released[new] - counts[new]) ** 2
            - (released[new] - counts[new] - 1) ** 2
        )
        if threshold < gain / (2 * sigma**2):
            record[i] = new
            counts[old] -= 1
            counts[new] += 1


@compiled
def admissions(rng, draws, released, sigma, n):
    kept = np.empty((draws, 4))
    p = np.full(4, 0.25)
    record = np.arange(n) % 4
    for d in range(draws):
        sweep_table(rng, p, record, released, sigma)
        _draw_dirichlet(rng, _count(record), p)
        kept[d] = p
    return kept


# Example 3: nine sums of clamped records with Laplace noise ---------------------------------------


@compiled
def _clamp(value):
    return min(max(value / 10, -1.0), 1.0)


@compiled
def _add_sums(sums, sign, y, u, v):
    """Add what a record adds to the nine sums, or take it away."""
    y, u, v = _clamp(y), _clamp(u), _clamp(v)
    sums[0] += sign * y
    sums[1] += sign * u * y
    sums[2] += sign * v * y
    sums[3] += sign * y * y
    sums[4] += sign * u
    sums[5] += sign * u * u
    sums[6] += sign * v
    sums[7] += sign * u * v
    sums[8] += sign * v * v


@compiled
def _distance(a, b):
    total = 0.0
    for j in range(len(a)):
        total += abs(a[j] - b[j])
    return total


@compiled
def sweep_regression(rng, b, x, y, x_mean, noise_sd, released, scale):
    """Metropolis on (x, y), drawn anew from the regression."""
    sums, proposed = np.zeros(9), np.empty(9)
    for i in range(len(y)):
        _add_sums(sums, 1.0, y[i], x[i, 0], x[i, 1])
    distance = _distance(sums, released)
    for i in range(len(y)):
        u = x_mean[0] + rng.standard_normal()
        v = x_mean[1] + rng.standard_normal()
        new = b[0] + b[1] * u + b[2] * v + noise_sd * rng.standard_normal()
        proposed[:] = sums
        _add_sums(proposed, -1.0, y[i], x[i, 0], x[i, 1])
        _add_sums(proposed, 1.0, new, u, v)
        farther = _distance(proposed, released)
        if -rng.standard_exponential() < (distance - farther) / scale:
            x[i, 0], x[i, 1], y[i] = u, v, new
            sums[:] = proposed
            distance = farther


@compiled
def _draw_coefficients(rng, x, y, noise_variance, prior_variance):
    """From the normal distribution of the coefficients given records."""
    precision = np.eye(3) / prior_variance
    weighted = np.zeros(3)
    row = np.ones(3)
    for i in range(len(y)):
        row[1:] = x[i]
        for j in range(3):
            weighted[j] += row[j] * y[i] / noise_variance
            for k in range(3):
                precision[j, k] += row[j] * row[k] / noise_variance
    root = np.linalg.cholesky(precision)
    noise = np.array([rng.standard_normal() for _ in range(3)])
    return np.linalg.solve(precision, weighted) + np.linalg.solve(root.T, noise)


@compiled
def regression(rng, draws, n, x_mean, noise_variance, prior_variance, released, scale):
    kept = np.empty((draws, 3))
    b = np.zeros(3)
    x, y = np.empty((n, 2)), np.zeros(n)
    x[:] = x_mean
    noise_sd = np.sqrt(noise_variance)
    for d in range(draws):
        sweep_regression(rng, b, x, y, x_mean, noise_sd, released, scale)
        b = _draw_coefficients(rng, x, y, noise_variance, prior_variance)
        kept[d] = b
    return kept


# Counts with an unknown rate: the sum of the clamped records with Laplace noise -------------------


@compiled
def sweep_counts(rng, rate, x, largest, released, scale):
    """Metropolis on Poisson records."""
    total = 0.0
    for i in range(len(x)):
        total += min(x[i], largest)
    for i in range(len(x)):
        new = rng.poisson(rate)
        proposed = total - min(x[i], largest) + min(new, largest)
        gain = (abs(released - total) - abs(released - proposed)) / scale
        if -rng.standard_exponential() < gain:
            x[i], total = new, proposed


@compiled
def poisson(rng, draws, n, shape, prior_rate, largest, released, scale):
    kept = np.empty((draws, 1))
    rate = shape / prior_rate
    x = np.full(n, int(rate))
    for d in range(draws):
        sweep_counts(rng, rate, x, largest, released, scale)
        rate = rng.standard_gamma(shape + x.sum()) / (prior_rate + n)
        kept[d, 0] = rate
    return kept


# Logistic regression: X'y with Laplace noise, X public --------------------------------------------


@compiled
def _linear(design, i, b):
    total = 0.0
    for j in range(len(b)):
        total += design[i, j] * b[j]
    return total


@compiled
def sweep_outcomes(rng, b, y, design, released, scale):
    """Metropolis on outcomes: one that changes adds a row of the design, or takes it away."""
    sums, proposed = np.zeros(len(b)), np.empty(len(b))
    for i in range(len(y)):
        for j in range(len(b)):
            sums[j] += design[i, j] * y[i]
    distance = _distance(sums, released)
    for i in range(len(y)):
        new = int(rng.random() < 1 / (1 + np.exp(-_linear(design, i, b))))
        threshold = -rng.standard_exponential()
        if new == y[i]:
            continue
        for j in range(len(b)):
            proposed[j] = sums[j] + (new - y[i]) * design[i, j]
        farther = _distance(proposed, released)
        if threshold < (distance - farther) / scale:
            y[i], distance = new, farther
            sums[:] = proposed


@compiled
def _log_density(b, y, design, prior_sd):
    total = -0.5 * (b**2).sum() / prior_sd**2
    for i in range(len(y)):
        linear = _linear(design, i, b)
        total += y[i] * linear - np.log1p(np.exp(linear))
    return total


@compiled
def logistic_regression(rng, draws, design, prior_sd, released, scale):
    """Coefficients by four steps of a random walk, scaled by the information at zero."""
    n, dim = design.shape
    kept = np.empty((draws, dim))
    b, y = np.zeros(dim), np.arange(n) % 2
    information = design.T @ design / 4 + np.eye(dim) / prior_sd**2
    walk = 2.4 / np.sqrt(dim) * np.linalg.cholesky(np.linalg.inv(information))
    for d in range(draws):
        sweep_outcomes(rng, b, y, design, released, scale)
        present = _log_density(b, y, design, prior_sd)
        for _ in range(4):
            new = b + walk @ np.array([rng.standard_normal() for _ in range(dim)])
            proposed = _log_density(new, y, design, prior_sd)
            if -rng.standard_exponential() < proposed - present:
                b, present = new, proposed
        kept[d] = b
    return kept


# What the loops share -----------------------------------------------------------------------------


@compiled
def _count(record):
    counts = np.zeros(4)
    for k in record:
        counts[k] += 1
    return counts


@compiled
def _draw_dirichlet(rng, counts, p):
    total = 0.0
    for k in range(len(p)):
        p[k] = rng.standard_gamma(1.0 + counts[k])
        total += p[k]
    for k in range(len(p)):
        p[k] /= total


@compiled
def _draw_category(rng, weights, total):
    u = rng.random() * total
    k = 0
    while k < len(weights) - 1 and u >= weights[k]:
        u -= weights[k]
        k += 1
    return k


@njit
def repeat(sweep, rng, times, arguments):
    """Make sweeps one after another: a generator crosses into numba once only."""
    for _ in range(times):
        sweep(rng, *arguments)
