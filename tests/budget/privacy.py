"""Privacy by its definitions, for noise added to two statistics that one record tells apart."""

import math

import numpy as np
from scipy.integrate import quad
from scipy.special import logsumexp
from scipy.stats import laplace, norm

from pymc_dapper.budget import ApproxDP

BOUNDS = ("simple", "tight")
TOO_LITTLE = 0.7
"""Noise that is 30 % too small, by which every guarantee must break."""
RHOS = (1e-12, 1e-9, 1e-6, 1e-3, 0.1, 1.0, 10.0, 1e3, 1e6)
DELTAS = (1e-300, 1e-100, 1e-30, 1e-10, 1e-6, 1e-3, 0.1, 0.5)
EPSILONS = (1e-6, 1e-3, 0.1, 1.0, 10.0, 1e3, 1e6)
ORDERS = (1.001, 1.5, 2.0, 5.0, 20.0, 100.0)


def log_integral(log_integrand, low, high, at):
    """Log of the integral of exp(log_integrand), scaled by its value at `at` against underflow."""
    top = log_integrand(at)
    value, _ = quad(lambda z: math.exp(log_integrand(z) - top), low, high, points=[at], limit=400)
    return top + math.log(value)


def renyi_gaussian(order, sigma, shift):
    """Renyi divergence of N(0, sigma^2) from N(shift, sigma^2), by quadrature."""

    def log_integrand(z):
        first, second = norm.logpdf(z, 0, sigma), norm.logpdf(z, shift, sigma)
        return order * first + (1 - order) * second

    mode = (1 - order) * shift
    log_moment = log_integral(log_integrand, mode - 12 * sigma, mode + 12 * sigma, mode)
    return log_moment / (order - 1)


def log_pmf_discrete_gaussian(k, sigma):
    support = np.arange(-60 * math.ceil(sigma), 60 * math.ceil(sigma) + 1)
    return -(k**2) / (2 * sigma**2) - logsumexp(-(support**2) / (2 * sigma**2))


def renyi_discrete_gaussian(order, sigma, shift):
    mode = round((1 - order) * shift)
    k = np.arange(mode - 60 * math.ceil(sigma), mode + 60 * math.ceil(sigma) + 1)
    first, second = (log_pmf_discrete_gaussian(k - by, sigma) for by in (0, shift))
    return logsumexp(order * first + (1 - order) * second) / (order - 1)


def renyi_two_outcomes(order, first, second):
    first, second = np.log(first), np.log(second)
    return logsumexp(order * first + (1 - order) * second) / (order - 1)


def hockey_stick(log_first, log_second, epsilon):
    """Sum of max(first - exp(epsilon) second, 0) over points with these log weights."""
    gap = epsilon + log_second - log_first
    return float(np.sum(np.where(gap < 0, -np.exp(log_first) * np.expm1(np.minimum(gap, 0)), 0)))


def delta_gaussian(sigma, shift, epsilon):
    """Hockey-stick divergence of N(shift, sigma^2) from N(0, sigma^2), by quadrature."""
    start = (
        shift / 2 + epsilon * sigma**2 / shift
    )  # Where the log ratio of the densities is epsilon.

    def log_integrand(z):
        first, second = norm.logpdf(z, shift, sigma), norm.logpdf(z, 0, sigma)
        return first + math.log(max(-math.expm1(epsilon + second - first), 1e-300))

    peak = max(start, shift) + sigma / max(1.0, (start - shift) / sigma)
    return math.exp(log_integral(log_integrand, start, peak + 12 * sigma, peak))


def delta_discrete_gaussian(sigma, shift, epsilon):
    k = np.arange(-60 * math.ceil(sigma), 60 * math.ceil(sigma) + 1)
    first, second = (log_pmf_discrete_gaussian(k - by, sigma) for by in (shift, 0))
    return hockey_stick(first, second, epsilon)


def largest_log_ratio_laplace(scale, shift):
    z = np.linspace(-5 * scale, 5 * scale, 2001)
    return np.max(laplace.logpdf(z, scale=scale) - laplace.logpdf(z, shift, scale))


def largest_log_ratio_discrete_laplace(scale, shift):
    k = np.arange(-1000, 1001)
    return np.max(-np.abs(k) / scale + np.abs(k - shift) / scale)


APPROXIMATE = [
    ApproxDP(epsilon, delta) for epsilon in (0.05, 1, 5) for delta in (1e-12, 1e-6, 1e-3)
]


PAPER = ApproxDP(2 * math.log(3), 1e-10)
"""The budget of the dapper paper's noisy table, whose sensitivity is 2."""
