"""First draws of models that none of the work was tuned on, beside example 2's in the same run.

    python -m benchmarks.untuned                 all of them: CPU seconds cold, and again
    python -m benchmarks.untuned columns:10      some; `columns:d` has d columns and all pairs
    python -m benchmarks.untuned latent_classes  one of `benchmarks.first_draws`: a mixture

With `--idle` first, PyMC's part is measured, too: `pm.sample` with a step that does nothing.

Each is measured in a process of its own, with a cache of its own. The package's bytecode is made
before, as an installed one has it.
How they came out the first time: docs/evidence/measured.md, "Untuned models, the first time".
"""

import compileall
import json
import os
import subprocess
import sys
import tempfile
from itertools import combinations
from pathlib import Path

import numpy as np
import pymc as pm
import pytensor.tensor as pt

import pymc_dapper as pmd

PEER = "admissions"
"""Example 2."""


def noisy(counts, scale, rng):
    return counts + rng.normal(0, scale, np.shape(counts))


def columns(d, n=1000, k=4, classes=4, scale=10.0, prior=None):
    """Rows of d columns and a latent class, from noisy counts of all pairs of columns.

    ``prior`` makes the columns' tables of probabilities; without it, each is a variable.
    """
    rng = np.random.default_rng(1)
    group = rng.integers(classes, size=n)
    tables = rng.dirichlet(np.ones(k), size=(d, classes))
    data = [np.array([rng.choice(k, p=table[c]) for c in group]) for table in tables]
    mechanism = pmd.GaussianMechanism(scale)
    with pm.Model() as model:
        share = pm.Dirichlet("share", np.ones(classes))
        z = pm.Categorical("z", share, shape=n)
        p, x = prior and prior((d, classes, k)), []
        for j in range(d):
            table = p[j] if prior else pm.Dirichlet(f"p{j}", np.ones(k), shape=(classes, k))
            x.append(pm.Categorical(f"x{j}", table[z], shape=n))
        for a, b in combinations(range(d), 2):
            table = np.bincount(data[a] * k + data[b], minlength=k * k).reshape(k, k)
            counted = pmd.statistics.cross_counts(x[a], x[b], k, k)
            mechanism.potential(f"t{a}_{b}", counted, released=noisy(table, scale, rng))
    return model


def regression_on_four(n=300, scale=20.0):
    """Four covariates and an outcome, all private, from noisy cross products."""
    rng = np.random.default_rng(2)
    covariates = rng.normal(size=(n, 4))
    y = covariates @ [1.0, -0.5, 0.0, 0.3] + rng.normal(size=n)
    data = np.column_stack([covariates, y])
    upper = np.triu_indices(5)
    with pm.Model() as model:
        beta, sigma = pm.Normal("beta", 0, 1, shape=4), pm.HalfNormal("sigma", 1)
        x = pm.Normal("x", 0, 1, shape=(n, 4))
        y = pm.Normal("y", (x * beta).sum(axis=1), sigma, shape=n)
        rows = pt.concatenate([x, y[:, None]], axis=1)
        released = noisy((data.T @ data)[upper], scale, rng)
        pmd.GaussianMechanism(scale).potential("privacy", (rows.T @ rows)[upper], released=released)
    return model


def sums_by_region(n=400, regions=12, scale=3.0):
    """Normal values in public regions, whose means share a normal law, from noisy sums."""
    rng = np.random.default_rng(3)
    region = rng.integers(regions, size=n)
    values = rng.normal(rng.normal(size=regions)[region], 1)
    with pm.Model() as model:
        spread = pm.HalfNormal("spread", 1)
        mean = pm.Normal("mean", 0, spread, shape=regions)
        x = pm.Normal("x", mean[region], 1, shape=n)
        inside = pt.eye(regions)[region].T @ x
        released = noisy(np.bincount(region, values, regions), scale, rng)
        pmd.GaussianMechanism(scale).potential("privacy", inside, released=released)
    return model


def zero_inflated(n=400, scale=5.0):
    """Zero-inflated numbers of visits, from a noisy histogram."""
    rng = np.random.default_rng(4)
    visits = np.where(rng.random(n) < 0.3, 0, rng.poisson(2.5, n)).clip(0, 7)
    with pm.Model() as model:
        psi, rate = pm.Beta("psi", 1, 1), pm.Gamma("rate", 2, 1)
        x = pm.ZeroInflatedPoisson("x", psi, rate, shape=n)
        table = pmd.statistics.counts(pt.minimum(x, 7), 8)
        released = noisy(np.bincount(visits, minlength=8), scale, rng)
        pmd.GaussianMechanism(scale).potential("privacy", table, released=released)
    return model


def heavy_tails(n=400, scale=4.0):
    """Values of a t distribution, from a noisy histogram."""
    rng, edges = np.random.default_rng(5), np.linspace(-6, 6, 13)
    counts = np.histogram(rng.standard_t(4, n).clip(-5.9, 5.9), edges)[0]
    with pm.Model() as model:
        mu, sigma = pm.Normal("mu", 0, 2), pm.HalfNormal("sigma", 2)
        x = pm.StudentT("x", nu=4, mu=mu, sigma=sigma, shape=n)
        table = pmd.statistics.histogram(x, edges)
        pmd.GaussianMechanism(scale).potential("privacy", table, released=noisy(counts, scale, rng))
    return model


def chain_of_answers(n=500, scale=6.0):
    """Three yes-no columns, each with odds by the one before, from counts of neighbours."""
    rng = np.random.default_rng(6)
    data = rng.integers(2, size=(3, n))
    with pm.Model() as model:
        a, b = pm.Normal("a", 0, 1.5, shape=3), pm.Normal("b", 0, 1.5, shape=2)
        x = [pm.Bernoulli("x0", logit_p=a[0], shape=n)]
        for k in (1, 2):
            x.append(pm.Bernoulli(f"x{k}", logit_p=a[k] + b[k - 1] * x[-1], shape=n))
        for k in (0, 1):
            table = np.bincount(2 * data[k] + data[k + 1], minlength=4).reshape(2, 2)
            counted = pmd.statistics.cross_counts(x[k], x[k + 1], 2, 2)
            pmd.LaplaceMechanism(scale).potential(
                f"t{k}", counted, released=noisy(table, scale, rng)
            )
    return model


def conditional_tables(n=1000, k=4, scale=10.0):
    """Three columns, each of a table of probabilities by the one before, from counts of pairs."""
    rng = np.random.default_rng(3)
    data = rng.integers(k, size=(3, n))
    with pm.Model() as model:
        p = [pm.Dirichlet(f"p{c}", np.ones((k, k) if c else k)) for c in range(3)]
        x = [pm.Categorical("x0", p[0], shape=n)]
        x += [pm.Categorical("x1", p[1][x[0]], shape=n)]
        x += [pm.Categorical("x2", p[2][x[1]], shape=n)]
        for c in (0, 1):
            table = np.bincount(k * data[c] + data[c + 1], minlength=k * k).reshape(k, k)
            counted = pmd.statistics.cross_counts(x[c], x[c + 1], k, k)
            pmd.LaplaceMechanism(scale).potential(
                f"t{c}", counted, released=noisy(table, scale, rng)
            )
    return model


def six_symptoms(n=600, scale=8.0):
    """Six yes-no columns of two latent classes, from the noisy counts of all pairs.

    Nothing tells the classes apart: they change names, and `share` and `p` have two modes.
    """
    rng = np.random.default_rng(7)
    data = rng.random((n, 6)) < np.where(rng.random(n)[:, None] < 0.4, 0.8, 0.2)
    with pm.Model() as model:
        share = pm.Beta("share", 1, 1)
        p = pm.Beta("p", 1, 1, shape=(2, 6))
        z = pm.Bernoulli("z", share, shape=n)
        x = pm.Bernoulli("x", p[z], shape=(n, 6))
        pairs = pt.stack([(x[:, a] * x[:, b]).sum() for a, b in combinations(range(6), 2)])
        found = [(data[:, a] & data[:, b]).sum() for a, b in combinations(range(6), 2)]
        pmd.GaussianMechanism(scale).potential("pairs", pairs, released=noisy(found, scale, rng))
    return model


def rates_of_areas(n=240, areas=8, scale=4.0):
    """Events of persons in public areas, whose rates share a log-normal law, from noisy sums."""
    rng = np.random.default_rng(8)
    area = np.arange(n) % areas
    events = np.bincount(area, rng.poisson(np.linspace(0.5, 3, areas)[area]), areas)
    with pm.Model() as model:
        mean, spread = pm.Normal("mean", 0, 1), pm.HalfNormal("spread", 1)
        rate = pm.LogNormal("rate", mean, spread, shape=areas)
        x = pm.Poisson("x", rate[area], shape=n)
        sums = pt.stack([x[area == k].sum() for k in range(areas)])
        pmd.LaplaceMechanism(scale).potential("privacy", sums, released=noisy(events, scale, rng))
    return model


def answers_by_age(n=800):
    """Randomised answers, with odds linear in a public age."""
    rng = np.random.default_rng(9)
    age = rng.uniform(-1, 1, n)
    answers = rng.integers(2, size=n)
    with pm.Model():
        a, b = pm.Normal("a", 0, 1.5), pm.Normal("b", 0, 1.5)
        x = pm.Bernoulli("x", logit_p=a + b * age, shape=n)
        pmd.RandomizedResponse(0.75, categories=2).observe("answer", x, released=answers)
        return pm.modelcontext(None)


def two_way(n=360, scale=5.0):
    """Normal values by two public factors, additive effects, from noisy sums of each cell."""
    rng = np.random.default_rng(10)
    row, column = rng.integers(3, size=n), rng.integers(4, size=n)
    sums = np.bincount(4 * row + column, rng.normal(row - column, 1), 12)
    with pm.Model() as model:
        a, b = pm.Normal("a", 0, 2, shape=3), pm.Normal("b", 0, 2, shape=4)
        sigma = pm.HalfNormal("sigma", 2)
        x = pm.Normal("x", a[row] + b[column], sigma, shape=n)
        cells = pt.stack([x[4 * row + column == k].sum() for k in range(12)])
        pmd.GaussianMechanism(scale).potential("privacy", cells, released=noisy(sums, scale, rng))
    return model


def incomes(n=500, scale=3.0):
    """Gamma incomes, from a noisy clamped sum and noisy numbers above three limits."""
    rng = np.random.default_rng(11)
    data = rng.gamma(2, 1.5, n)
    with pm.Model() as model:
        shape, rate = pm.Gamma("shape", 2, 1), pm.Gamma("rate", 2, 1)
        x = pm.Gamma("x", shape, rate, shape=n)
        above = pt.stack([(x > limit).sum() for limit in (1, 3, 6)])
        seen = [(data > limit).sum() for limit in (1, 3, 6)]
        pmd.LaplaceMechanism(scale).potential("above", above, released=noisy(seen, scale, rng))
        pmd.LaplaceMechanism(10 * scale).potential(
            "total", pt.clip(x, 0, 10).sum(), released=data.clip(0, 10).sum() + 5.0
        )
    return model


def abilities(n=300, items=5, scale=5.0):
    """Answers to five items by a latent ability, from noisy counts of each item and of scores."""
    rng = np.random.default_rng(12)
    data = rng.random((n, items)) < 1 / (1 + np.exp(-rng.normal(size=(n, 1))))
    with pm.Model() as model:
        difficulty = pm.Normal("difficulty", 0, 1, shape=items)
        ability = pm.Normal("ability", 0, 1, shape=n)
        x = pm.Bernoulli("x", logit_p=ability[:, None] - difficulty, shape=(n, items))
        mechanism = pmd.GaussianMechanism(scale)
        mechanism.potential("items", x.sum(axis=0), released=noisy(data.sum(axis=0), scale, rng))
        scores = np.bincount(data.sum(axis=1), minlength=items + 1)
        table = pt.eq(x.sum(axis=1)[:, None], np.arange(items + 1)).sum(axis=0)
        mechanism.potential("scores", table, released=noisy(scores, scale, rng))
    return model


def rows_of_a_table(n=700, scale=6.0):
    """Education given region, a table with a Dirichlet prior for each row, from both margins."""
    rng = np.random.default_rng(13)
    region, education = rng.integers(3, size=n), rng.integers(5, size=n)
    with pm.Model() as model:
        share = pm.Dirichlet("share", np.ones(3))
        p = pm.Dirichlet("p", np.ones(5), shape=(3, 5))
        r = pm.Categorical("region", share, shape=n)
        e = pm.Categorical("education", p[r], shape=n)
        mechanism = pmd.DiscreteGaussianMechanism(scale)
        for name, x, data, k in (("regions", r, region, 3), ("levels", e, education, 5)):
            counts = np.bincount(data, minlength=k)
            released = np.rint(noisy(counts, scale, rng)).astype(int)
            mechanism.potential(name, pmd.statistics.counts(x, k), released=released)
    return model


def counted_in(data, sizes):
    """Count people by some of their columns."""
    cells = np.ravel_multi_index(data, sizes)
    return np.bincount(cells, minlength=int(np.prod(sizes))).reshape(sizes)


UNEVEN = [2, 3, 4, 5, 6, 2, 3, 4]
"""Numbers of categories of `uneven_columns`."""


def uneven_columns(n=1500, classes=3):
    """Eight columns of two to six categories and a class, from triples with noise of their own."""
    rng = np.random.default_rng(21)
    sizes = UNEVEN
    data = [rng.integers(k, size=n) for k in sizes]
    with pm.Model() as model:
        share = pm.Dirichlet("share", np.ones(classes))
        z = pm.Categorical("z", share, shape=n)
        x = []
        for j, k in enumerate(sizes):
            p = pm.Dirichlet(f"p{j}", np.full(k, 0.5), shape=(classes, k))
            x.append(pm.Categorical(f"x{j}", p[z], shape=n))
        for number, (a, b, c) in enumerate([*combinations(range(8), 3)][::3]):
            scale, shape = 4.0 + 0.5 * number, (sizes[a], sizes[b], sizes[c])
            cell = (x[a] * shape[1] + x[b]) * shape[2] + x[c]
            table = counted_in((data[a], data[b], data[c]), shape).ravel()
            released = table + rng.laplace(0, scale, table.shape)
            counted = pmd.statistics.counts(cell, table.size)
            pmd.LaplaceMechanism(scale).potential(f"t{number}", counted, released=released)
    return model


def graphical_columns(n=2000):
    """Six columns of different sizes without a class, by `graphical`, from seven pairs."""
    rng = np.random.default_rng(22)
    labels = {
        x: [f"{x}{i}" for i in range(k)] for x, k in zip("abcdef", (3, 4, 2, 5, 3, 4), strict=True)
    }
    data = {x: rng.integers(len(known), size=n) for x, known in labels.items()}
    noise, queries = pmd.GaussianMechanism(9.0), []
    for dims in ("ab", "bc", "cd", "de", "ef", "ac", "df"):
        table = counted_in([data[x] for x in dims], [len(labels[x]) for x in dims])
        known = {x: labels[x] for x in dims}
        queries.append(pmd.Query(dims, noisy(table, 9.0, rng), noise, tuple(dims), known))
    return pmd.microdata.graphical(pmd.Release(queries), n=n)


def pairs_in_turn(n=2000, d=10, scale=10.0):
    """Ten columns of two to five categories, by `regressions`, from all 45 pairs."""
    rng = np.random.default_rng(24)
    sizes = [2 + j % 4 for j in range(d)]
    data = [rng.integers(k, size=n) for k in sizes]
    noise, queries = pmd.GaussianMechanism(scale), []
    for a, b in combinations(range(d), 2):
        table = counted_in([data[a], data[b]], [sizes[a], sizes[b]])
        queries.append(pmd.Query(f"{a}{b}", noisy(table, scale, rng), noise, (f"x{a}", f"x{b}")))
    return pmd.microdata.regressions(pmd.Release(queries), n=n)


def classes_of_columns(n=2000, scale=8.0, sizes=UNEVEN[:5], classes=4):
    """Five columns by `latent_classes` of four classes, from all pairs."""
    rng = np.random.default_rng(25)
    group = rng.integers(3, size=n)
    tables = [rng.dirichlet(np.ones(k), size=3) for k in sizes]
    data = [(rng.random((n, 1)) > table.cumsum(axis=1)[group, :-1]).sum(axis=1) for table in tables]
    noise, queries = pmd.GaussianMechanism(scale), []
    for a, b in combinations(range(len(sizes)), 2):
        table = counted_in([data[a], data[b]], [sizes[a], sizes[b]])
        queries.append(pmd.Query(f"{a}{b}", noisy(table, scale, rng), noise, (f"x{a}", f"x{b}")))
    return pmd.microdata.latent_classes(pmd.Release(queries), n=n, classes=classes)


def columns_of_a_matrix(n=1000, d=4, k=4, classes=4, scale=10.0):
    """A matrix of four columns and a class, from the counts of all pairs, by `pt.bincount`."""
    rng = np.random.default_rng(26)
    group = rng.integers(classes, size=n)
    tables = rng.dirichlet(np.ones(k), size=(d, classes))
    data = [(rng.random((n, 1)) > t.cumsum(axis=1)[group, :-1]).sum(axis=1) for t in tables]
    with pm.Model() as model:
        z = pm.Categorical("z", pm.Dirichlet("share", np.ones(classes)), shape=n)
        p = pm.Dirichlet("p", np.ones(k), shape=(classes, d, k))
        x = pm.Categorical("x", p[z], shape=(n, d))
        for a, b in combinations(range(d), 2):
            found = np.bincount(k * data[a] + data[b], minlength=k**2)
            counted = pt.bincount(k * x[:, a] + x[:, b], minlength=k**2)
            pmd.GaussianMechanism(scale).potential(
                f"t{a}{b}", counted, released=noisy(found, scale, rng)
            )
    return model


def tables_in_an_array():
    """Ten columns and a class, whose tables are one array."""
    return columns(10, prior=lambda shape: pm.Dirichlet("p", np.ones(shape[-1]), shape=shape))


def softmax_of_an_array():
    """Ten columns and a class, whose tables are a softmax of one array."""
    return columns(
        10, prior=lambda shape: pm.math.softmax(pm.Normal("a", 0, 1.5, shape=shape), axis=-1)
    )


def softmax_of_arrays():
    """Ten columns and a class, whose tables are softmaxes of an array each."""

    def tables(shape):
        arrays = [pm.Normal(f"a{j}", 0, 1.5, shape=shape[1:]) for j in range(shape[0])]
        return [pm.math.softmax(a, axis=-1) for a in arrays]

    return columns(10, prior=tables)


def classes_of_ten_columns():
    """Ten columns of two to sixteen categories in the same way, by eight classes."""
    return classes_of_columns(5000, 20.0, [5, 7, 16, 7, 14, 6, 5, 2, 5, 3], 8)


def rounded_and_suppressed(n=800):
    """Columns, each given the one before, from pairs: rounded, or suppressed, or just noisy."""
    rng = np.random.default_rng(23)
    sizes = [2, 3, 4, 2, 3]
    data = [rng.integers(k, size=n) for k in sizes]
    with pm.Model() as model:
        x = [pm.Categorical("x0", pm.Dirichlet("p0", np.ones(2)), shape=n)]
        for j in range(1, 5):
            p = pm.Dirichlet(f"p{j}", np.ones(sizes[j]), shape=(sizes[j - 1], sizes[j]))
            x.append(pm.Categorical(f"x{j}", p[x[-1]], shape=n))
        for number, (a, b) in enumerate(combinations(range(5), 2)):
            values = noisy(counted_in((data[a], data[b]), (sizes[a], sizes[b])), 4.0, rng)
            mechanism = pmd.GaussianMechanism(4.0)
            if number % 3 == 0:
                mechanism, values = mechanism.rounded(5), 5 * np.round(values / 5)
            elif number % 3 == 1:
                mechanism = mechanism.published_if(">=", 60)
                values = np.where(values >= 60, values, np.nan)
            counted = pmd.statistics.cross_counts(x[a], x[b], sizes[a], sizes[b])
            mechanism.potential(f"t{a}{b}", counted, released=values)
    return model


def areas_by_time(areas=8, times=20, scale=3.0, *, by_steps=False):
    """Counts of areas at times, whose log rates are AR(1) in time, with noise on each count."""
    rng = np.random.default_rng(26)
    log_rate = 3 + 0.3 * rng.normal(size=(areas, times)).cumsum(axis=1)
    counts = rng.poisson(np.exp(log_rate))
    with pm.Model() as model:
        level, spread = pm.Normal("level", 3, 1, shape=areas), pm.HalfNormal("spread", 0.5)
        rho = pm.Beta("rho", 4, 2)
        if by_steps:
            z = pm.Normal("z", shape=(areas, times))
            now = [z[:, 0]]
            for t in range(1, times):
                now.append(rho * now[-1] + spread * z[:, t])
            u = pt.stack(now, axis=1)
        else:
            start = pm.Normal.dist(0, 1, shape=(areas, 1))
            u = pm.AR("u", rho=rho[None], sigma=spread, init_dist=start, shape=(areas, times))
        events = pm.Poisson("events", pt.exp(level[:, None] + u), shape=(areas, times))
        released = np.rint(noisy(counts, scale, rng)).astype(int)
        pmd.DiscreteGaussianMechanism(scale).potential("privacy", events, released=released)
    return model


UNTUNED = {
    x.__name__: x
    for x in (
        regression_on_four, sums_by_region, zero_inflated, heavy_tails, chain_of_answers,
        conditional_tables, six_symptoms, rates_of_areas, areas_by_time, answers_by_age, two_way,
        incomes, abilities, rows_of_a_table, uneven_columns, graphical_columns,
        rounded_and_suppressed, pairs_in_turn, classes_of_columns, classes_of_ten_columns,
        columns_of_a_matrix, tables_in_an_array, softmax_of_an_array, softmax_of_arrays,
    )
}  # fmt: skip


def build(name):
    """Build a model by its name; ``columns:d`` has d columns."""
    name, _, d = name.partition(":")
    return columns(int(d)) if name == "columns" else UNTUNED[name]()


def measured(name, way="pymc_dapper"):
    """CPU seconds to the first draw of a model, with an empty cache and then again."""
    job = json.dumps({"task": "first_draw", "workload": name, "way": way})
    with tempfile.TemporaryDirectory() as folder:
        flags = f"{os.environ.get('PYTENSOR_FLAGS', '')},base_compiledir={folder}".strip(",")
        environment = os.environ | {"PYTENSOR_FLAGS": flags, "OMP_NUM_THREADS": "1"}
        command = [sys.executable, "-m", "benchmarks.measure", job]
        found = []
        for _ in range(2):
            run = subprocess.run(command, env=environment, capture_output=True, text=True)
            if run.returncode:
                silent = f"ended by exit code {run.returncode}, and says nothing"
                return (run.stderr.strip() or silent).splitlines()[-1]
            found.append(json.loads(run.stdout.splitlines()[-1])["cpu_seconds"])
    return found


def main(names):
    """Print a line for each model: CPU seconds, and how many times what example 2 takes."""
    compileall.compile_dir(Path(pmd.__file__).parent, quiet=1)
    idle, names = names[:1] == ["--idle"], [x for x in names if x != "--idle"] or UNTUNED
    peer = measured(PEER)
    print(f"{PEER}: {peer[0]:.1f} s cold, {peer[1]:.2f} s again", flush=True)
    for name, way in ((x, way) for x in names for way in ("pymc_dapper", *["idle"] * idle)):
        found = measured(name, way)
        name = f"{name}, PyMC with an idle step" if way == "idle" else name
        if isinstance(found, str):
            print(f"{name}: {found}", flush=True)
            continue
        cold, again = found
        print(
            f"{name}: {cold:.1f} s cold ({cold / peer[0]:.2f} times), {again:.2f} s again "
            f"({again / peer[1]:.2f} times)",
            flush=True,
        )


if __name__ == "__main__":
    main(sys.argv[1:])
