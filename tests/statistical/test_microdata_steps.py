"""Ready-made models of microdata by the steps that `pmd.sample` takes: Geweke's test and ranks.

`exactness/` has them with 3 people, who are drawn one by one. Here `graphical` has more people than
cells, so that linked tables count them, and `BoundaryStep` moves the tables of `latent_classes`.
"""

from dataclasses import replace

import numpy as np
import pytest

import pymc_dapper as pmd
from pymc_dapper.counts.step import CountStep
from pymc_dapper.interweaving.boundary_step import BoundaryStep
from tests.statistical.exactness import cases, verdicts
from tests.statistical.exactness.cases import CASES
from tests.statistical.exactness.sampler import Sampler

N, NOISE = 12, 2.5
COUNTED = {"person_c": "c", "person_c_person_b": "cb", "person_b_person_a": "ba"}


def tables_of(people):
    """How many are in each cell of the linked tables."""
    found = {}
    for name, columns in COUNTED.items():
        cell = sum(people[f"person_{x}"] * 2**k for k, x in enumerate(reversed(columns)))
        counts = [(cell == k).sum(axis=-1) for k in range(2 ** len(columns))]
        shape = (*cell.shape[:-1], *[2] * len(columns))
        found[f"{name}_counts"] = np.stack(counts, axis=-1).reshape(shape)
    return found


def counted(drawn):
    people = {x: drawn[x] for x in drawn if x.startswith("person")}
    return {x: drawn[x] for x in drawn if x not in people} | tables_of(people)


def release_of_counts(rng, drawn):
    cb, ba = (drawn[f"{x}_counts"] for x in ("person_c_person_b", "person_b_person_a"))
    tables = {"table_a * b": np.swapaxes(ba, -1, -2), "table_b * c": np.swapaxes(cb, -1, -2)}
    noise = cases.SMALL_NOISE
    return {f"{name}_released": rng.normal(x, noise) for name, x in tables.items()}


def sampler_of(name, monkeypatch):
    """The steps that users get; boundaries move, and columns are drawn, from the start."""
    monkeypatch.setattr(cases, "PEOPLE", N)
    monkeypatch.setattr(cases, "SMALL_NOISE", NOISE)
    monkeypatch.setattr(cases, "TABLES", {x: N * y / y.sum() for x, y in cases.TABLES.items()})
    case = replace(CASES[name], released=cases.TABLES)
    model = case.model()
    if name == "graphical microdata":
        model = pmd.tabulate(model)
        prior = case.prior
        case = replace(
            case,
            prior=lambda rng, size: counted(prior(rng, size)),
            records=(),  # no means over people
            release=release_of_counts,
        )
    steps = pmd.assign_steps(model=model, progressbar=False)
    assert isinstance(steps[0 if name == "graphical microdata" else -1], CountStep | BoundaryStep)
    return Sampler(case, model, tuple(steps))


def begun(sampler, rng):
    for step in sampler.steps:
        step.setup_chain(rng, 0, 0)
        inner = getattr(step, "inner", step)
        if isinstance(inner, BoundaryStep):
            inner.moves = inner.redraws = True
    return sampler


class Reversed:
    """A step that looks the cells of what was released up in reverse order."""

    def __init__(self, step):
        self.inner = step

    def __getattr__(self, name):
        return getattr(self.inner, name)

    def step(self, point):
        for given in self.inner._givens:
            given.data.values = [np.ascontiguousarray(x[::-1, ::-1]) for x in given.data.values]
        return self.inner.step(point)


@pytest.mark.long
@pytest.mark.parametrize("name", ["graphical microdata", "microdata of latent classes"])
def test_joint_laws_and_ranks_are_those_of_the_prior(name, monkeypatch):
    sampler, rng = sampler_of(name, monkeypatch), np.random.default_rng(1)
    found = verdicts.geweke(begun(sampler, rng), rng, 2_000)
    assert not found.caught, found
    *others, last = sampler.steps
    twin = begun(sampler.with_steps([*others, Reversed(last)]), rng)
    found = verdicts.geweke(twin, rng, 1_000)
    assert found.statistic > 2 * verdicts.Z_LIMIT, found
    thin = verdicts.thinning(begun(sampler, rng), rng)
    found = verdicts.calibration(begun(sampler, rng), rng, 1_000, thin)
    assert not found.caught, found
    found = verdicts.calibration(begun(twin, rng), rng, 1_000, thin)
    assert found.caught, found
