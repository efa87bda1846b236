"""A sex-by-age table, published with noise but with its totals as they are.

256 people are counted by sex and age. What is published has discrete Laplace noise in each of the
46 cells (inverse scale 0.5), and yet keeps the total, the number of females and the number of
people of voting age; and no cell is negative. So the noise is conditioned on all that. It is drawn
by Metropolised independent sampling: 43 cells are proposed, the other three solved for.

The script prints acceptance rates, errors and what conditioning does to the privacy guarantee. The
figure, saved to examples/output/invariants.png (another place: --output PATH), shows what becomes
of the total in the obvious other way: adding noise freely, then setting negative cells to zero.
"""

import argparse
import json
from pathlib import Path

import arviz as az
import numpy as np
from _figures import OTHERS, save
from matplotlib.figure import Figure
from scipy import stats

from pymc_dapper.reference.invariants import privacy_loss, sample_under_invariants

HERE = Path(__file__).parent
DATA = json.loads((HERE / "data" / "sex_by_age_invariants.json").read_text(encoding="utf-8"))
OUTPUT = HERE / "output" / "invariants.png"

TABLE = np.array([DATA["confidential"]["female"], DATA["confidential"]["male"]])
CHILDREN = DATA["below_voting_age"]
NOISE = stats.dlaplace(0.5)

CONDITIONED, CUT_OFF = OTHERS

# The largest counts among girls, women and men: room for what the invariants require.
LARGEST = [0, 16, 23 + 15]


def invariants():
    """Rows of A: the total, the females, the people of voting age."""
    rows = np.zeros((3, *TABLE.shape), dtype=int)
    rows[0], rows[1, 0], rows[2, :, CHILDREN:] = 1, 1, 1
    return rows.reshape(3, -1)


def release(inverse_scale, draws, solve_for=None, progressbar=False, chains=4):
    """Draw tables that keep the invariants."""
    return sample_under_invariants(
        TABLE,
        NOISE,
        equalities=invariants(),
        inequalities=(np.eye(TABLE.size), np.zeros(TABLE.size)),
        proposal=stats.dlaplace(inverse_scale),
        solve_for=solve_for,
        draws=draws,
        tune=min(draws, 1000),
        chains=chains,
        random_seed=1,
        progressbar=progressbar,
    )


def effective(drawn):
    """Fewest effective draws of any cell, per thousand proposals."""
    sizes = az.ess(drawn.to_datatree())["release"]
    return float(sizes.min()) / drawn.draws[..., 0, 0].size * 1000


def print_privacy():
    """What conditioning does to the guarantee: loss = (1 + gamma) k epsilon."""
    epsilon = 1.0
    two_bins = {"noise": stats.dlaplace(epsilon / 2), "equalities": [[1, 1]]}
    bounds = {"inequalities": (np.eye(2), np.zeros(2))}
    cases = {
        "no restriction, one more": ((([5], [6]), {"noise": stats.dlaplace(epsilon)}), 1),
        "the query itself is held": (
            (([5], [5]), {"noise": stats.dlaplace(epsilon), "equalities": [[1]]}),
            1,
        ),
        "two bins, a replacement is k = 2": ((([5, 3], [4, 4]), two_bins), 2),
        "two bins, a replacement is k = 1": ((([5, 3], [4, 4]), two_bins), 1),
        "and no bin negative, k = 1": ((([0, 8], [1, 7]), two_bins | bounds), 1),
    }
    print(f"\n{'':34}{'loss':>7}{'gamma':>8}")
    for name, (((one, other), options), k) in cases.items():
        loss = privacy_loss(one, other, **options)
        print(f"{name:34}{loss:7.3f}{loss / (k * epsilon) - 1:8.3f}")


def draw_figure(naive):
    """Totals of tables that were cut off at zero, beside the total that conditioning keeps."""
    figure = Figure(figsize=(7, 3.6), layout="constrained")
    axes = figure.subplots()
    totals, true = naive.sum(axis=1), TABLE.sum()
    bins = np.arange(totals.min(), totals.max() + 2) - 0.5
    label = "noise added, negative cells set to zero"
    axes.hist(totals, bins, weights=np.full(totals.size, 100 / totals.size), color=CUT_OFF)
    axes.plot([], [], color=CUT_OFF, linewidth=6, label=label)
    label = "noise conditioned on the total: always the true one"
    axes.axvline(true, color=CONDITIONED, linewidth=2.5, label=label)
    axes.set_xlim(true - 60, true + 70)
    axes.set_xlabel("total of the released table, people")
    axes.set_ylabel("releases, %")
    axes.spines[["top", "right"]].set_visible(False)
    figure.legend(loc="outside upper left", frameon=False)
    return figure


def main(draws=25_000, output=OUTPUT):
    """Sample, print, save the figure."""
    grid = np.array([0.45, 0.5, 0.55, 0.6, 0.65, 0.7, 0.8, 1.0])
    print(f"{'inverse scale':32}" + "".join(f"{scale:7.2f}" for scale in grid))
    for label, solve_for in (
        ("solving for the first cells", None),
        ("solving for the largest cells", LARGEST),
    ):
        drawn = [release(scale, draws, solve_for) for scale in grid]
        curve = [100 * float(one.acceptance_rate.mean()) for one in drawn]
        efficiency = [effective(one) for one in drawn]
        for row, values in (
            (label, None),
            ("  accepted, %", curve),
            ("  effective draws per thousand", efficiency),
        ):
            print(f"{row:32}" + "".join(f"{value:7.2f}" for value in values or []))

    drawn = release(0.6, 4 * draws, LARGEST, progressbar=True)
    rng = np.random.default_rng(2)
    noise = NOISE.rvs(size=(20_000, TABLE.size), random_state=rng)
    naive = np.maximum(TABLE.ravel() + noise, 0)

    print(f"\n{'':22}{'mean abs error':>15}{'bias of zero-to-two':>21}{'total off by':>14}")
    for name, x in (
        ("conditioned", drawn.draws.reshape(-1, TABLE.size)),
        ("cut off at zero", naive),
    ):
        error = x - TABLE.ravel()
        small = error[:, TABLE.ravel() <= 2].mean()
        off = error.sum(axis=1).mean()
        print(f"{name:22}{np.abs(error).mean():15.2f}{small:21.2f}{off:14.2f}")
    print_privacy()
    save(draw_figure(naive), Path(output))


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--output", type=Path, default=OUTPUT, help="where to save the figure")
    main(output=parser.parse_args().output)
