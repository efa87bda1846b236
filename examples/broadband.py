"""Broadband in 32,735 ZIP codes: a real release, rounded and clamped, read by its rules.

Microsoft published the share of households that use the internet at broadband speed, by ZIP code,
with differential privacy (Pereira et al. 2021, arXiv:2103.14035). The noisy shares were clamped to
[0, 1] and rounded to 0.001; every sixth row lies at an end. The noise depends on the number of
households, which isn't published: there are 24 classes, each with quantiles of the error.

The model has ZIP codes within counties within states. What is shared out among them is the rate at
which households are counted: estimated from devices, it can be above 1. The clamped shares are
then what a mechanism with its rules says they are: at the upper end is known that the rate, with
noise, was 1 or more. What isn't known is the law of the noise. Here it is Laplace noise with an
unknown scale for each class, around what the published 95 % quantile of the error would give. The
script prints how the errors that follow from it compare with the published ones.

Each ZIP code's rate enters one released value only. So all are moved at once, and each is accepted
by itself; what lies above them has textbook conditionals. A noise scale is moved by itself and,
where noise is small beside how rates differ, together with the rates of its class. How far chains
agree, on all of it, is printed with the tables.

It prints tables and saves a figure to examples/output/broadband.png (another place: --output PATH).
All rows take minutes; some states (--states DE RI) take less. The data's source and licence are in
examples/data/broadband.md.
"""

import argparse
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter

import numpy as np
import pandas as pd
import pymc as pm
import pytensor.tensor as pt
from _figures import COLOURS, save
from _markdown import fill_file, numbers, table
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

import pymc_dapper as pmd

DATA = Path(__file__).parent / "data" / "broadband.csv.gz"
OUTPUT = Path(__file__).parent / "output" / "broadband.png"
TAILS = (0.05, 0.95)
SCALE_SPREAD = 0.3
"""Of the log of a noise scale around what the published quantile would give."""
SWEEPS = 4
"""For each draw that is kept: those in between would differ little from it."""
TILES = """\
AK .  .  .  .  .  .  .  .  .  ME
.  .  .  .  .  .  .  .  .  VT NH
WA ID MT ND MN IL WI MI NY RI MA
OR NV WY SD IA IN OH PA NJ CT .
CA UT CO NE MO KY WV VA MD DE .
.  AZ NM KS AR TN NC SC DC .  .
.  .  .  OK LA MS AL GA .  .  .
HI .  .  TX .  .  .  .  FL .  .
"""
"""Where a map of tiles has each state."""


@dataclass(frozen=True)
class Release:
    """The published data, with numbers instead of names."""

    share: np.ndarray
    county: np.ndarray
    """Of each row."""
    state: np.ndarray
    """Of each county."""
    noise_class: np.ndarray
    """Of each row."""
    names: dict
    mean_error: np.ndarray
    error_95: np.ndarray


def load(states=None):
    """Read the release; of some states only, if given."""
    rows = pd.read_csv(DATA, dtype={"fips": str, "zip": str})
    if states is not None:
        unknown = set(states) - set(rows["state"])
        if unknown:
            raise ValueError(f"there are no rows of {', '.join(sorted(unknown))}")
        rows = rows[rows["state"].isin(states)]
    counties = rows.drop_duplicates("fips")
    state, names = pd.factorize(counties["state"])
    errors = rows[["mae", "q95"]].drop_duplicates().sort_values(["mae", "q95"])
    of_class = {pair: i for i, pair in enumerate(errors.itertuples(index=False, name=None))}
    return Release(
        rows["usage"].to_numpy(),
        pd.factorize(rows["fips"])[0],
        state,
        np.array([of_class[pair] for pair in zip(rows["mae"], rows["q95"], strict=True)]),
        {"zip": rows["zip"].to_numpy(), "county": counties["fips"].to_numpy(), "state": names},
        errors["mae"].to_numpy(),
        errors["q95"].to_numpy(),
    )


def scale_by_quantile(release):
    """Scale of Laplace noise in each class by the error's quantile, if nothing were clamped."""
    return release.error_95 / -np.log(0.05)


def size_of(release):
    """Of each row, on a standard scale: classes are of the number of households."""
    size = -np.log(scale_by_quantile(release))[release.noise_class]
    return (size - size.mean()) / size.std()


def of_scale(scale, release):
    """The mechanism of all rows."""
    return pmd.LaplaceMechanism(scale[release.noise_class]).clamped(0, 1).rounded(0.001)


def mean_of(point, release):
    """Mean of each row's log rate, given what lies above."""
    return point["in_county"][release.county] + point["of_size"] * size_of(release)


def build_model(release):
    """Rates of ZIP codes, on a log scale, within counties within states."""
    guess, size = scale_by_quantile(release), size_of(release)
    levels = ["states", "counties", "zips"]
    coords = {**release.names, "level": levels, "noise_class": np.arange(len(guess))}
    with pm.Model(coords=coords) as model:
        variance = pm.InverseGamma("variance", 2.0, 0.5, dims="level")
        nation = pm.Normal("nation", -1.0, 1.0)
        of_size = pm.Normal("of_size", 0.0, 1.0)
        state = pm.Normal("in_state", nation, pt.sqrt(variance[0]), dims="state")
        county = pm.Normal("in_county", state[release.state], pt.sqrt(variance[1]), dims="county")
        log_rate = pm.Normal(
            "log_rate",
            county[release.county] + of_size * size,
            pt.sqrt(variance[2]),
            dims="zip",
        )
        scale = pm.LogNormal("scale", np.log(guess), SCALE_SPREAD, dims="noise_class")
        of_scale(scale, release).observe(
            "share", pt.exp(log_rate), released=release.share, dims="zip"
        )
    return model


def moves_of_rates(log_likelihood, release):
    """Make the function that moves all ZIP codes' rates at once, each accepted by itself."""
    # As far as the published error goes, on the log scale; as the prior where a row is at an end.
    share = np.clip(release.share, 0.02, 1)
    step = np.minimum(release.error_95[release.noise_class] / share, 1.0)
    step[(release.share == 0) | (release.share == 1)] = 1.0

    def draw(rng, point):
        present, mean, level = point["log_rate"], mean_of(point, release), point["variance"][2]
        log_density = log_likelihood(present, point["scale"]) - (present - mean) ** 2 / (2 * level)
        for width in (0.3, 1.0, 3.0):
            proposed = present + width * step * rng.normal(size=step.size)
            proposed_density = log_likelihood(proposed, point["scale"]) - (proposed - mean) ** 2 / (
                2 * level
            )
            accept = np.log(rng.uniform(size=step.size)) < proposed_density - log_density
            present = np.where(accept, proposed, present)
            log_density = np.where(accept, proposed_density, log_density)
        return {"log_rate": present}

    return draw


def moves_of_scales(log_likelihood, release):
    """Make the function that moves the noise scales, each class by itself.

    Given the rates, a scale follows from how far these are from what was published. Where noise is
    small beside how rates differ, that is hardly free to change: there a scale is moved with its
    class's rates, whose distances from what was published are stretched alike.
    """
    guess, in_class = np.log(scale_by_quantile(release)), np.bincount(release.noise_class)
    between = (release.share > 0) & (release.share < 1)
    stretches = between & (release.share > 2 * release.error_95[release.noise_class])
    alone = np.zeros_like(stretches)

    def by_class(x):
        return np.bincount(release.noise_class, x, minlength=len(guess))

    def log_density(log_rate, scale, mean, level):
        rows = log_likelihood(log_rate, scale) - (log_rate - mean) ** 2 / (2 * level)
        return by_class(rows) - (np.log(scale) - guess) ** 2 / (2 * SCALE_SPREAD**2)

    def draw(rng, point):
        log_rate, scale = point["log_rate"], point["scale"]
        given = mean_of(point, release), point["variance"][2]
        present = log_density(log_rate, scale, *given)
        for width, moved in ((2 / np.sqrt(in_class), alone), (0.1, stretches), (0.4, stretches)):
            factor = np.exp(width * rng.normal(size=len(scale)))
            each, rate = factor[release.noise_class], np.exp(log_rate)
            stretched = np.where(moved, release.share - each * (release.share - rate), rate)
            possible = stretched > 0
            proposed = np.log(np.where(possible, stretched, rate))
            density = log_density(proposed, scale * factor, *given)
            jacobian = by_class(np.where(moved, np.log(each) + log_rate - proposed, 0.0))
            accept = np.log(rng.uniform(size=len(scale))) < density - present + jacobian
            accept &= by_class(~possible) == 0
            log_rate = np.where(accept[release.noise_class], proposed, log_rate)
            scale = np.where(accept, scale * factor, scale)
            present = np.where(accept, density, present)
        return {"log_rate": log_rate, "scale": scale}

    return draw


def draw_above(release):
    """Make the function that draws what lies above the ZIP codes: textbook conditionals."""
    size = size_of(release)
    in_county, in_state = np.bincount(release.county), np.bincount(release.state)

    def normal(rng, precision, weighted):
        return rng.normal(weighted / precision, np.sqrt(1 / precision))

    def draw(rng, point):
        log_rate, state, variance = point["log_rate"], point["in_state"], point["variance"]
        county = point["in_county"]
        precision = 1 / variance
        # Each has its prior, and what lies right below it.
        rest = log_rate - county[release.county]
        slope = normal(rng, 1 + precision[2] * size @ size, precision[2] * size @ rest)
        sums = np.bincount(release.county, log_rate - slope * size)
        county = normal(
            rng,
            precision[1] + precision[2] * in_county,
            precision[1] * state[release.state] + precision[2] * sums,
        )
        nation = normal(rng, 1 + precision[0] * len(state), -1 + precision[0] * state.sum())
        state = normal(
            rng,
            precision[0] + precision[1] * in_state,
            precision[0] * nation + precision[1] * np.bincount(release.state, county),
        )
        below = (
            state - nation,
            county - state[release.state],
            log_rate - county[release.county] - slope * size,
        )
        variance = [(0.5 + x @ x / 2) / rng.gamma(2.0 + len(x) / 2) for x in below]
        return {
            "variance": np.array(variance),
            "nation": nation,
            "of_size": slope,
            "in_state": state,
            "in_county": county,
        }

    return draw


def sweeps(model, release, n):
    """Make the function that goes through all variables n times."""
    rates, scale = pt.dvector("rates"), pt.dvector("scale")
    log_density = of_scale(scale, release).logp(release.share, pt.exp(rates))
    log_likelihood = model.compile_fn(log_density, inputs=[rates, scale], point_fn=False)
    moves = [
        moves_of_rates(log_likelihood, release),
        moves_of_scales(log_likelihood, release),
        draw_above(release),
    ]

    def draw(rng, point):
        for move in n * moves:
            point = {**point, **move(rng, point)}
        return point

    return draw


def sample(model, release, draws, tune, chains):
    """All by draws of our own, several sweeps for each that is kept."""
    with model:
        start = {**model.initial_point(), "log_rate": np.log(np.clip(release.share, 0.02, 1.0))}
        step = pmd.FunctionStep(model.free_RVs, sweeps(model, release, SWEEPS), initial_point=start)
        return pm.sample(
            draws=draws,
            tune=tune,
            chains=chains,
            step=step,
            initvals={"log_rate": start["log_rate"]},
            random_seed=1,
            progressbar=False,
            compute_convergence_checks=False,
        )


def by_county(release, shares):
    """Mean share of each county's ZIP codes; the last axis is that of ZIP codes."""
    ends = np.flatnonzero(np.diff(release.county, append=-1))
    sums = np.diff(np.cumsum(shares, axis=-1)[..., ends], axis=-1, prepend=0.0)
    return sums / np.bincount(release.county)


def r_hat(draws):
    """Split R-hat of each quantity; the first axes are those of chains and draws."""
    chains, n, *each = draws.shape
    halves = draws[:, : n // 2 * 2].reshape(2 * chains, n // 2, *each)
    within = halves.var(axis=1, ddof=1).mean(axis=0)
    between = halves.mean(axis=1).var(axis=0, ddof=1)
    return np.sqrt(1 - 2 / n + between / within).ravel()


def convergence(release, posterior):
    """Whether chains agree: on parameters, means of counties, and rates of ZIP codes."""
    log_rate = posterior["log_rate"].to_numpy()
    above = ("variance", "nation", "of_size", "in_state", "scale")
    found = {
        "parameters": np.concatenate([r_hat(posterior[name].to_numpy()) for name in above]),
        "counties": r_hat(by_county(release, np.minimum(np.exp(log_rate), 1.0))),
        "ZIP codes": r_hat(log_rate),
    }
    rows = [
        [name, f"{x.size:,}", *numbers([np.median(x), x.max()], 3), f"{np.sum(x > 1.05):,}"]
        for name, x in found.items()
    ]
    return table(["chains agree on", "number", "median R-hat", "largest", "above 1.05"], rows, 1)


def errors_by_class(release, shares, scale, rng):
    """Mean and 95 % quantile of the error in each class, as they follow from the model."""
    noise = rng.laplace(size=shares.shape) * scale[:, release.noise_class]
    error = np.abs(np.round(np.clip(shares + noise, 0, 1), 3) - shares)
    of_class = [error[:, release.noise_class == k] for k in range(len(release.mean_error))]
    return np.array([[x.mean(), np.quantile(x, 0.95)] for x in of_class])


def draw(release, shares):
    """States as tiles, and all counties in their order."""
    figure = Figure(figsize=(11, 9), layout="constrained")
    top, bottom = figure.subplots(2, 1, height_ratios=[1.35, 1])
    county = by_county(release, shares)
    middle, (low, high) = np.median(county, axis=0), np.quantile(county, TAILS, axis=0)
    in_zip = shares.mean(axis=0)
    of_state = release.state[release.county]
    for y, line in enumerate(TILES.splitlines()):
        for x, name in enumerate(line.split()):
            [k] = (
                np.flatnonzero(release.names["state"] == name)
                if name in release.names["state"]
                else [None]
            )
            if k is None:
                continue
            share = in_zip[of_state == k].mean()
            colour = (1 - 0.85 * share, 1 - 0.6 * share, 1 - 0.25 * share)
            top.add_patch(Rectangle((x - 0.47, -y - 0.47), 0.94, 0.94, color=colour))
            ink = "white" if share > 0.5 else "#222222"
            top.text(x, -y + 0.12, name, ha="center", va="center", color=ink, weight="bold")
            top.text(x, -y - 0.22, f"{100 * share:.0f} %", ha="center", va="center", color=ink)
    top.set_xlim(-0.6, 10.6)
    top.set_ylim(-7.6, 0.6)
    top.set_aspect("equal")
    top.axis("off")
    top.set_title("Households with broadband: mean over a state's ZIP codes", loc="left")

    order = np.argsort(middle)
    place = np.arange(len(order))
    naive = by_county(release, release.share)
    bottom.plot(
        place, naive[order], ".", color=COLOURS["naive"], markersize=2.5, label="as published"
    )
    bottom.fill_between(
        place, low[order], high[order], color=COLOURS["private"], alpha=0.35, linewidth=0
    )
    bottom.plot(place, middle[order], color=COLOURS["private"], label="posterior, 90 %")
    bottom.set_ylim(0, 1)
    bottom.set_xlim(0, len(order))
    bottom.set_xlabel("counties, in the order of their posterior median")
    bottom.set_ylabel("mean share of ZIP codes")
    bottom.spines[["top", "right"]].set_visible(False)
    bottom.legend(frameon=False, loc="upper left")
    return figure


def tables(release, shares, scale):
    """What the release says by itself, and with its rules and noise."""
    middle, (low, high) = shares.mean(axis=0), np.quantile(shares, TAILS, axis=0)
    groups = {
        "at 0": release.share == 0,
        "between": (release.share > 0) & (release.share < 1),
        "at 1": release.share == 1,
    }
    rows = []
    for name, rows_of in groups.items():
        found = [x[rows_of].mean() for x in (release.share, middle, low, high)]
        rows.append([name, f"{rows_of.sum():,}", *numbers(found, 2)])
    by_end = table(["published", "ZIP codes", "mean", "posterior mean", "5 %", "95 %"], rows, 1)

    county = by_county(release, shares)
    naive, (from_, to) = by_county(release, release.share), np.quantile(county, TAILS, axis=0)
    outside = np.mean((naive < from_) | (naive > to))
    spread = [np.std(x) for x in (naive, county.mean(axis=0))]
    by_analysis = table(
        ["counties", "published", "posterior"],
        [
            ["standard deviation of their means", *numbers(spread, 3)],
            ["mean width of 90 % intervals", "none", f"{np.mean(to - from_):.3f}"],
            ["published mean outside the interval", f"{100 * outside:.0f} %", ""],
        ],
        1,
    )

    found = errors_by_class(release, shares, scale, np.random.default_rng(1))
    classes = table(
        ["published mean error", "by the model", "published 95 % error", "by the model"],
        [
            numbers([a, model_a, b, model_b], 3)
            for a, b, (model_a, model_b) in zip(
                release.mean_error, release.error_95, found, strict=True
            )
        ],
        0,
    )
    return {
        "broadband ends": by_end,
        "broadband counties": by_analysis,
        "broadband noise": classes,
    }


def main(draws=400, tune=200, chains=2, states=None, output=OUTPUT, page=None):
    """Sample, print the tables, save the figure; write the tables into a page if given."""
    release = load(states)
    model = build_model(release)
    began = perf_counter()
    idata = sample(model, release, draws, tune, chains)
    seconds = perf_counter() - began
    log_rate, scale = (
        (x := idata.posterior[name].to_numpy()).reshape(-1, x.shape[-1])
        for name in ("log_rate", "scale")
    )
    shares = np.minimum(np.exp(log_rate), 1.0)
    print(
        f"{release.share.size:,} ZIP codes in {len(release.state):,} counties of "
        f"{len(release.names['state'])} states; {seconds:.0f} s\n"
    )
    found = tables(release, shares, scale)
    found["broadband chains"] = convergence(release, idata.posterior)
    print("\n\n".join(found.values()))
    fill_file(page, found)
    save(draw(release, shares), Path(output))
    return idata


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--output", type=Path, default=OUTPUT, help="where to save the figure")
    parser.add_argument("--page", type=Path, help="page to write the tables into")
    parser.add_argument("--states", nargs="+", help="only these, by their two letters")
    arguments = parser.parse_args()
    main(states=arguments.states, output=arguments.output, page=arguments.page)
