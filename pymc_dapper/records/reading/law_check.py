"""A numerical check that draws from the records' prior follow its density.

Records are drawn from their prior, but parameters move by its density. If the two are different
laws, the chain has no posterior. PyMC's own pairs are known (`graphs/laws.py`) and aren't checked.
Others are checked as follows.

Each record is drawn at one of two parameter values, chosen by a coin. The density gives the
probability that a record comes from the second: D = p2 / (p1 + p2). Given the records, the coins
are independent and have these probabilities, whatever the law: discrete, continuous, mixed or of
many dimensions, with its density normalised or not. So in any group chosen by D, the number from
the second value is a sum of independent Bernoulli variables with mean sum D. By Bernstein's
inequality, it is further than t = L / 3 + sqrt(L^2 / 9 + 2 L V) from its mean with probability 2
exp(-L) at most, where V is the sum of D (1 - D).
"""

from collections.abc import Callable, Sequence

import numpy as np
import pytensor.tensor as pt
from pytensor.graph import explicit_graph_inputs
from pytensor.tensor.variable import TensorVariable

from pymc_dapper.graphs.errors import FAILURES, ReadingError
from pymc_dapper.graphs.evaluation import Point, at_point, choose_rows
from pymc_dapper.graphs.laws import (
    counts_truncated_between,
    draws_follow_density,
    log_densities_at_points,
)
from pymc_dapper.records.reading.model import ModelReading, log_priors_of_each

FALSE_ALARMS = 1e-6
"""Largest probability that a right pair is refused."""
DIRECTIONS, GROUPS = 6, 8
"""Most pairs of parameter values, and number of groups of records at each."""
RECORDS, MOST_STATES = 4096, 256
"""Number of records drawn at each pair, if that takes no more states."""
TELLING = 0.1
"""If the mean of D (1 - D), at most 1/4, is smaller, a pair is too far apart to be informative."""
SHRINKS = 12
POINTS_AT = 16
"""Number of parameter values at which densities at point masses are checked."""


def check_laws(
    reading: ModelReading,
    point: Point,
    draw_parameters: Callable[[np.random.Generator], Point | None],
) -> None:
    """Refuse records whose draws don't follow their density.

    ``draw_parameters`` draws a point from the parameters' prior, if possible. Only laws that depend
    on parameters are checked: otherwise the density decides nothing.
    """
    unknown = [rv for rv in reading.rvs if not draws_follow_density(rv.owner)]
    inputs = set(explicit_graph_inputs(list(reading.log_priors)))
    moving = [x.name for x in reading.parameters if x in inputs]
    if not unknown or not moving or reading.proposes_conditionally:
        return
    rng = np.random.default_rng(0)
    others = [x for each in rng.spawn(POINTS_AT) if (x := draw_parameters(each)) is not None]
    for rv in unknown:
        _check_truncated_counts(rv)
    left = [rv for rv in unknown if not _is_mixture_with_points(reading, rv, [point, *others])]
    if left and others:
        names = ", ".join(f"'{rv.name}'" for rv in left)
        laws = _Laws(reading)
        # All together, and one by one: otherwise the widest prior would dominate.
        directions = [moving, *([x] for x in moving if len(moving) > 1)][:DIRECTIONS]
        for k, (moved, each) in enumerate(zip(directions, rng.spawn(DIRECTIONS), strict=False)):
            first = k % len(others)
            for there in [*others[first:], *others[:first]]:
                if any(np.any(there[x] != point[x]) for x in moved):
                    laws.check(point, there, moved, names, each)
                    break


def _is_mixture_with_points(
    reading: ModelReading, rv: TensorVariable, points: Sequence[Point]
) -> bool:
    """Check for a mixture of point masses with laws that have a density."""
    graphs = log_densities_at_points(rv.owner)
    if graphs is None:
        return False
    view = reading.view
    highest = pt.stack([x.max() for x in view.at_values(graphs)]).max()
    evaluate = at_point(view.model, [highest])
    for point in points:
        [found] = evaluate(point)
        if found > -np.inf:
            raise ReadingError(
                f"the prior of '{rv.name}' is a mixture of a law with a point mass (pm.DiracDelta, "
                "or a bound of pm.Censored) and of one that has a density there. PyMC adds up the "
                "two, a probability and a density, so parameters would follow another law than the "
                "records that are drawn. Write two variables, which = pm.Bernoulli(...) and value, "
                "of the continuous law, and pt.switch(pt.eq(which, 1), value, 0.0) in the "
                "statistics. pm.HurdleGamma and pm.HurdleLogNormal are right as they are"
            )
    return True


def _check_truncated_counts(rv: TensorVariable) -> None:
    if counts_truncated_between(rv.owner):
        raise ReadingError(
            f"the prior of '{rv.name}' is a distribution of whole numbers, truncated below at a "
            "number that isn't whole. PyMC takes `lower - 1` for the largest number that is cut "
            "off, so its density isn't that of its draws. Say the smallest number that is left: "
            "lower=1 in the place of 0.5"
        )


class _Laws:
    """The records' prior, as draws and as a density of each record."""

    def __init__(self, reading: ModelReading):
        self._reading = reading
        self._propose = reading.proposing_in_python()
        of_each = _log_density_of_each(reading)
        self._log_density = reading.in_python([of_each])
        self._by_record = of_each.type.shape != (1,) or reading.n_records == 1

    def check(
        self, here: Point, there: Point, moving: Sequence[str], names: str, rng: np.random.Generator
    ) -> None:
        """Compare draws with the density at one point and on the way to another."""
        there = {**here, **{x: there[x] for x in moving}}
        try:
            there = self._near_enough(here, there, moving, rng)
            n_states = int(np.clip(RECORDS // self._reading.n_records, 1, MOST_STATES))
            found = [self._draw(here, there, each) for each in rng.spawn(n_states)]
        except FAILURES:  # at an impossible draw
            return
        probability = np.concatenate([x for x, _ in found])
        second = np.concatenate([x for _, x in found])
        order = np.argsort(probability, kind="stable")
        level = np.log(2 * DIRECTIONS * (GROUPS + 1) / FALSE_ALARMS)
        for group in (order, *np.array_split(order, GROUPS)):
            expected, n_second = probability[group].sum(), int(np.count_nonzero(second[group]))
            variance = (probability[group] * (1 - probability[group])).sum()
            tolerance = level / 3 + np.sqrt(level**2 / 9 + 2 * level * variance)
            if abs(n_second - expected) > tolerance:
                raise self._disagree(names, moving, len(group), n_second, expected)

    def _disagree(
        self, names: str, moving: Sequence[str], n: int, n_second: int, expected: float
    ) -> ReadingError:
        moved = [x for x in self._reading.parameters if x.name in moving]
        parameters = ", ".join(f"'{name}'" for name in self._reading.names(moved))
        return ReadingError(
            f"draws from the prior of {names} don't follow its density: of {n} records drawn at "
            f"two values of {parameters}, {n_second} came from the second, and by their density "
            f"it should be {expected:.0f}. DapperStep draws records, but parameters move by the "
            "records' density, so both must be the same law. For a CustomDist, check that `logp` "
            "and `random` (or `dist`) give each parameter the same meaning. A number with a "
            "positive probability must have that in `logp`, and no density beside it"
        )

    def _near_enough(
        self, here: Point, there: Point, moving: Sequence[str], rng: np.random.Generator
    ) -> Point:
        """Go back towards the first point until single records don't separate the two."""
        for _ in range(SHRINKS):
            found = [self._draw(here, there, each)[0] for each in rng.spawn(4)]
            probability = np.concatenate(found)
            if len(probability) and (probability * (1 - probability)).mean() >= TELLING:
                break
            there = {**there, **{x: _half_way(here[x], there[x]) for x in moving}}
        return there

    def _draw(
        self, here: Point, there: Point, rng: np.random.Generator
    ) -> tuple[np.ndarray, np.ndarray]:
        """Draw records at one or the other point; return each D, and whether it was the second."""
        reading = self._reading
        start = [here[x.name] for x in reading.records]
        at = [[point[x.name] for x in reading.parameters] for point in (here, there)]
        second = rng.random(reading.n_records) < 0.5
        if not self._by_record:
            second[:] = second[0]
        with np.errstate(all="ignore"):
            (first_drawn, first_possible), (second_drawn, second_possible) = (
                self._propose(each, start, parameters)
                for each, parameters in zip(rng.spawn(2), at, strict=True)
            )
            records = choose_rows(second, second_drawn, first_drawn)
            possible = np.where(second, second_possible, first_possible)
            first_log, second_log = (
                np.asarray(self._log_density(*records, *parameters)[0], dtype=np.float64)
                for parameters in at
            )
            probability = 1 / (1 + np.exp(first_log - second_log))
        if not self._by_record:
            second, possible = second[:1], possible.all(keepdims=True)
        told = possible & ~np.isnan(probability)
        return probability[told], second[told]


def _half_way(here: np.ndarray, there: np.ndarray) -> np.ndarray:
    """Return the middle; whole numbers are rounded away from the first, so they still differ."""
    if np.asarray(there).dtype.kind == "f":
        return (here + there) / 2
    apart = there - here
    return here + apart - np.trunc(apart / 2).astype(apart.dtype)


def _log_density_of_each(reading: ModelReading) -> TensorVariable:
    """Return each record's log-density; if there is only one for all, that one, shape (1,)."""
    view, rvs = reading.view, reading.rvs
    try:
        found = log_priors_of_each(view, rvs, reading.records)
    except ReadingError:
        found = []
    if len(found) < len(rvs):
        return pt.add(0.0, *(x.sum() for x in view.log_densities(rvs))).reshape((1,))
    return pt.specify_shape(pt.add(0.0, *found), (reading.n_records,))
