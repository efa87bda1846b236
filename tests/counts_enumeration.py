"""The transition matrix of a sweep over counts, enumerated without looking inside it.

The kernels are evaluated in Python, by their own source. The log-density is a sum of terms, each of
which is looked up in a table by the value of a linear function of the counts. A sweep asks for
random numbers of three kinds: integers in a range, an index with given weights, and the exponential
that sets the level of a slice. Each is answered from a script, and what was asked is noted. So all
answers can be gone through, one after the other, with their probabilities. The level matters only
by which tables lie above it: one level between each two differences of log-densities is enough.

Sweeps of many lines have too many levels. Their lines are drawn from laws that were enumerated so,
each line by itself, once for each table (`Model.by_lines`).
"""

import numpy as np
from numba import njit
from scipy import sparse

from pymc_dapper.backend.in_python import in_python
from pymc_dapper.counts.kernels.draws import Draws
from pymc_dapper.counts.kernels.line import Structure, sum_of_terms
from pymc_dapper.counts.kernels.linked import pack_linked
from pymc_dapper.counts.kernels.schedule import Grids, Joint, Lines, Schedule, room
from pymc_dapper.counts.kernels.sweep import sweep_counts

LEVEL, INDEX = -1, -2


class Script:
    """Answers in place of a random generator."""

    def __init__(self, script):
        self.script = script
        self.position = 0
        self.options = 0  # of the first question that the script has no answer to
        self.weights = np.zeros(0)

    def answer(self, options, weights=None):
        k = self.position
        self.position += 1
        if k < len(self.script):
            return self.script[k]
        if k == len(self.script):
            self.options, self.weights = options, weights
        return 0.0


ANSWERS = {
    "pick": lambda draws, low, high: low + int(draws.answer(high - low + 1)),
    "exponential": lambda draws: draws.answer(LEVEL),
    "choose": lambda draws, weights: int(draws.answer(INDEX, weights / weights.sum())),
}


@njit(inline="always")
def look_up(kind, first, start, values, slopes, t, context):
    """A term: context[0] holds its values for 0, 1, ..., and before them how many there are."""
    place = values[first] + t * slopes[first]
    if place < 0 or place >= context[0][start]:
        return -np.inf
    return context[0][start + 1 + int(place)]


@njit(inline="always")
def nothing_else(values, slopes, t, context):
    return 0.0


@njit(inline="always")
def log_density(context, values, slopes, terms, n_terms, whole, t):
    return sum_of_terms(look_up, nothing_else, context, values, slopes, terms, n_terms, whole, t)


def scripted(kernel, **instead):
    """Make a function of a kernel, in Python, that draws from a script.

    It calls the functions that are given `instead` of those of these names.
    """
    made = {}
    evaluate, density = in_python(kernel, made), in_python(log_density, made)
    for each in made.values():
        each.__globals__.update(ANSWERS | instead)

    def sweep(script, counts, context, structure, schedule, curvatures):
        draws = Script(script)
        moves = *schedule, room(schedule)
        swept = evaluate(density, context, structure, *moves, counts, curvatures, draws)
        return swept.counts, swept.log_density, draws.options, draws.weights

    return sweep


SWEEP = scripted(sweep_counts)


def schedule(single=(), directions=(), factor=None):
    """Moves of single cells, and others with the steps of all cells.

    With a Cholesky factor of the directions' scalar products, they move together as well.
    """
    empty, nothing = np.zeros(0, dtype=np.int64), np.zeros(1, dtype=np.int64)
    lines = Lines(np.array(single, dtype=np.int64), nothing, empty, empty, empty)
    joint = Joint(nothing, empty, np.zeros(0))
    if len(directions):
        steps = sparse.csr_array(np.atleast_2d(directions))
        of_steps = (x.astype(np.int64) for x in (steps.indptr, steps.indices, steps.data))
        lines = Lines(lines.single, *of_steps, np.arange(steps.shape[0]))
    if factor is not None:
        joint = Joint(np.array([0, len(directions)]), np.arange(len(directions)), factor.ravel())
    grids = Grids(empty, empty, empty, nothing, empty, empty)
    return Schedule(lines, grids, pack_linked(empty, empty, empty, empty), joint)


def grid(n_rows, cells, passes):
    """A table of known margins; or a group, if it has one row."""
    shape = np.array([n_rows]), np.array([len(cells) // n_rows])
    places = np.array([0]), np.arange(len(cells) + 1), cells
    return schedule()._replace(grids=Grids(*shape, *places, np.array([passes])))


class Model:
    """A log-density of counts.

    Parameters
    ----------
    linear : array_like, shape (number of terms, number of cells)
        What each term sees.
    tables : list of array_like
        The terms' values at 0, 1, ....
    """

    def __init__(self, linear, tables):
        matrix = sparse.csc_array(np.array(linear, dtype=float))
        sizes = np.array([len(table) for table in tables])
        n = len(tables)
        self.structure = Structure(
            matrix.indptr.astype(np.int64),
            matrix.indices.astype(np.int64),
            matrix.data,
            np.arange(n),
            np.zeros(n, dtype=np.int64),
            np.arange(n),
            np.cumsum(sizes + 1) - sizes - 1,
        )
        numbers = np.concatenate([x for table in tables for x in ([len(table)], table)])
        structure = self.structure
        self.context = (structure.kinds, structure.first, structure.contexts), (numbers,)

    def matrix(self, states, moves, curvature, kernel=SWEEP):
        """Transition matrix of a sweep, between tables.

        `curvature` is that of each term; None to have it measured at the present table.
        """
        self._curvatures = np.zeros(0) if curvature is None else np.array(curvature, dtype=float)
        index = {tuple(state): k for k, state in enumerate(states)}
        at = np.array([self._run(SWEEP, (), state, schedule())[1] for state in states])
        later = levels(np.subtract.outer(at, at))
        matrix = np.zeros((len(states), len(states)))
        for k, state in enumerate(states):
            # The first level is one below the present table.
            of_level = [levels(at[k] - at), later]
            for outcome, probability in self._outcomes(kernel, state, moves, of_level):
                matrix[k, index[outcome]] += probability
        np.testing.assert_allclose(matrix.sum(axis=1), 1.0, atol=1e-12)
        return matrix

    def by_lines(self, states, laws):
        """A sweep for `matrix`, of many lines: each is drawn from its law, enumerated once.

        `laws` keeps those that were enumerated, for sweeps of the same lines in another order.
        """
        at = {}

        def law(table, cells, steps):
            if not at:
                at.update({tuple(x): self._run(SWEEP, (), x, schedule())[1] for x in states})
            change, found = np.zeros(len(table), dtype=int), {}
            change[list(cells)] = steps
            apart = np.array(states) - table
            on_line = (apart * steps[0] == apart[:, cells[:1]] * change).all(axis=1)
            below = levels(at[table] - np.array(list(at.values()))[on_line])
            alone = schedule(directions=[change])
            for outcome, probability in self._outcomes(SWEEP, table, alone, [below]):
                found[outcome] = found.get(outcome, 0.0) + probability
            return list(found), np.array(list(found.values()))

        def update_line(density, context, structure, curvatures, state, line, n_cells, draws):
            cells, steps = (tuple(x[:n_cells].tolist()) for x in (line.cells, line.steps))
            key = tuple(state.counts.tolist()), cells, steps
            if key not in laws:
                laws[key] = law(*key)
            tables, weights = laws[key]
            state.counts[:] = tables[int(draws.answer(INDEX, weights))]
            return 0, 0.0

        return scripted(sweep_counts, update_line=update_line)

    def _run(self, kernel, script, state, moves):
        given = self.context, self.structure, moves, self._curvatures
        return kernel(script, np.array(state), *given)

    def _outcomes(self, kernel, state, moves, of_level):
        """All tables after a sweep, with probabilities."""
        pending = [((), 1.0, 0)]
        while pending:
            script, probability, slices = pending.pop()
            counts, _, options, weights = self._run(kernel, script, state, moves)
            if options == 0:
                yield tuple(counts.tolist()), probability
                continue
            if options == LEVEL:
                answers, slices = of_level[min(slices, 1)], slices + 1
            elif options == INDEX:
                answers = [(k, p) for k, p in enumerate(weights) if p > 0]
            else:
                answers = [(k, 1 / options) for k in range(options)]
            pending += [((*script, answer), probability * p, slices) for answer, p in answers]


def levels(differences):
    """A level between each two differences of log-densities, with its probability."""
    gaps = np.sort(differences.ravel())
    gaps = gaps[gaps > 1e-9]
    gaps = gaps[np.diff(gaps, prepend=0) > 1e-9]
    edges = np.concatenate([[0.0], gaps, [np.inf]])
    between = np.append((edges[:-2] + edges[1:-1]) / 2, edges[-2] + 1)
    return list(zip(between, -np.diff(np.exp(-edges)), strict=True))


def connected(*matrices):
    """Whether every table can be reached from every other."""
    steps = sum((matrix > 0).astype(float) for matrix in matrices)
    return bool(np.all(np.linalg.matrix_power(steps + np.eye(len(steps)), len(steps)) > 0))


def some_draws(rng, number=100):
    return Draws(rng.random(number), np.zeros(1, dtype=np.int64))
