"""The paper's section 6: one record, and how the privacy loss budget governs mixing.

theta has a flat prior (here: a very wide normal one), x ~ N(theta, sigma^2), and x is released with
noise of sd 1 / epsilon.
"""

import arviz as az
import numpy as np
import pymc as pm
from _markdown import numbers, table
from matplotlib.figure import Figure

import pymc_dapper as pmd

RELEASED = 1.0
FLAT = 1_000.0  # sd of the prior: gamma changes by less than 1e-3 (1 - gamma)
SETTINGS = [(epsilon, sigma) for sigma in (1.0, 3.0) for epsilon in (0.1, 0.3, 1.0, 3.0)]


def gamma(epsilon, sigma):
    """The exact fraction of missing information, and convergence rate of two exact blocks."""
    return 1 / (1 + (epsilon * sigma) ** 2)


def build_model():
    """epsilon and sigma are data, so that one compiled model serves all their values."""
    with pm.Model() as model:
        epsilon, sigma = pm.Data("epsilon", 1.0), pm.Data("sigma", 1.0)
        theta = pm.Normal("theta", 0, FLAT)
        x = pm.Normal("x", theta, sigma, shape=1)
        pm.Potential("release", pm.logp(pm.Normal.dist(x.sum(), 1 / epsilon), RELEASED))
    return model


def build_steps(model):
    """Two samplers: x by Metropolis from its prior, and x drawn exactly. theta is drawn exactly."""

    def draw_x(rng, point):
        epsilon, sigma = model["epsilon"].get_value(), model["sigma"].get_value()
        precision = epsilon**2 + 1 / sigma**2
        mean = (epsilon**2 * RELEASED + point["theta"] / sigma**2) / precision
        return {"x": rng.normal(mean, precision**-0.5, size=1)}

    with model:
        theta = pmd.ConjugateStep([model["theta"]])
        return {
            "metropolis": [pmd.DapperStep([model["x"]]), theta],
            "exact": [pmd.FunctionStep([model["x"]], draw_x), theta],
        }


def measure(draws=20_000, tune=500, settings=SETTINGS):
    """Autocorrelations and effective draws by both samplers, and missing information estimated."""
    model = build_model()
    steps = build_steps(model)
    return [_measure_one(model, steps, *setting, draws, tune) for setting in settings]


def _measure_one(model, steps, epsilon, sigma, draws, tune):
    found = {"epsilon": epsilon, "sigma": sigma, "gamma": gamma(epsilon, sigma)}
    with model:
        pm.set_data({"epsilon": epsilon, "sigma": sigma})
        for name, chosen in steps.items():
            idata = pm.sample(
                draws,
                tune=tune,
                chains=2,
                cores=1,
                step=chosen,
                random_seed=1,
                progressbar=False,
                compute_convergence_checks=False,
            )
            theta = idata.posterior["theta"].values
            found[name] = [autocorrelation(theta, lag) for lag in (1, 2)]
            found[f"{name}, effective"] = float(az.ess(theta)) / theta.size
            if name == "metropolis":
                missing = pmd.diagnostics.missing_information(idata, model, thin=10, random_seed=1)[
                    "theta"
                ]
                found["missing"] = missing.values
    return found


def autocorrelation(draws, lag):
    """Autocorrelation of (chain, draw) draws around their common mean."""
    centred = draws - draws.mean()
    return float((centred[:, lag:] * centred[:, :-lag]).mean() / (centred**2).mean())


def mixing_table(measured):
    """The exact rate beside what was measured."""
    rows = []
    for one in measured:
        fraction, error = one["missing"]
        rows.append(
            [
                f"{one['epsilon']:g}",
                f"{one['sigma']:g}",
                *numbers([one["gamma"], one["exact"][0], one["metropolis"][0]]),
                f"{fraction:.3f} ± {error:.3f}",
                *numbers([one["gamma"] ** 2, one["exact"][1], one["metropolis"][1]]),
                *numbers([one["exact, effective"], one["metropolis, effective"]]),
            ]
        )
    return table(
        [
            "ε",
            "σ",
            "γ",
            "lag 1, exact",
            "lag 1, Metropolis",
            "missing information",
            "γ²",
            "lag 2, exact",
            "lag 2, Metropolis",
            "effective per draw, exact",
            "effective per draw, Metropolis",
        ],
        rows,
    )


def draw(measured):
    """Rate, and effective draws, over epsilon times sigma: all that they depend on."""
    figure = Figure(figsize=(9, 3.8), layout="constrained")
    left, right = figure.subplots(1, 2)
    grid = np.geomspace(0.05, 20, 200)
    rate = gamma(grid, 1.0)
    left.plot(grid, rate, color="#595959", label="γ, exact")
    right.plot(grid, (1 - rate) / (1 + rate), color="#595959", label="two exact blocks, by γ")
    x = [one["epsilon"] * one["sigma"] for one in measured]
    styles = {"exact": ("#1b5fa6", "o"), "metropolis": ("#c1500a", "x")}
    labels = {"exact": "x drawn exactly", "metropolis": "x by Metropolis"}
    for name, (colour, marker) in styles.items():
        points = {"color": colour, "marker": marker, "linestyle": "none", "label": labels[name]}
        left.plot(x, [one[name][0] for one in measured], **points)
        right.plot(x, [one[f"{name}, effective"] for one in measured], **points)
    missing = np.array([one["missing"] for one in measured])
    left.errorbar(
        x,
        missing[:, 0],
        2 * missing[:, 1],
        fmt="s",
        color="#2e8b57",
        markerfacecolor="none",
        markersize=9,
        label="missing_information",
    )
    left.set_title("Lag-1 autocorrelation of θ", loc="left")
    right.set_title("Effective draws per draw", loc="left")
    right.set_yscale("log")
    for axes in (left, right):
        axes.set_xscale("log")
        axes.set_xlabel("ε σ: less privacy to the right")
        axes.legend(frameon=False)
        axes.spines[["top", "right"]].set_visible(False)
    return figure
