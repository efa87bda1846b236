"""CountStep: updates of latent tables of counts."""

import sys
import warnings
from collections.abc import Sequence
from functools import partial
from math import inf
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from pymc import Model
from pymc.exceptions import SamplingError
from pytensor.graph import Variable

from pymc_dapper.backend.internals import (
    PointType,
    RandomGenerator,
    SamplerWarning,
    StatsType,
    StepMethodState,
    dataclass_state,
)
from pymc_dapper.backend.iterations import Transition
from pymc_dapper.checks import flag, real_numbers, whole_number
from pymc_dapper.conjugacy.conditional import read_conditionals
from pymc_dapper.conjugacy.step import ConjugateStep
from pymc_dapper.counts.compiled.data import CountData
from pymc_dapper.counts.compiled.sweep import any_impossible, check_sweep, compile_count_sweep
from pymc_dapper.counts.compiled.unmoved import Change, find_changes, held_cells, look_again, looks
from pymc_dapper.counts.kernels.schedule import Packed
from pymc_dapper.counts.reading.description import describe_counts, name_cells, summarise_counts
from pymc_dapper.counts.reading.known_totals import moves_of
from pymc_dapper.counts.reading.model import CountReading, read_counts
from pymc_dapper.counts.reading.moves import PASS_A_BASIS, Moves
from pymc_dapper.counts.reading.self_check import by_variable, in_cells
from pymc_dapper.counts.reading.tree import read_tree
from pymc_dapper.counts.start import Starts
from pymc_dapper.counts.trees.choice import choose_tree
from pymc_dapper.counts.trees.model import ModelTree, NoTreeError, SolvedCounts
from pymc_dapper.graphs.errors import ReadingError
from pymc_dapper.plausibility.check import check_releases
from pymc_dapper.steps.base import Given, Step
from pymc_dapper.steps.building import tells_why
from pymc_dapper.steps.stats import WARNING_STAT, WARNING_TYPE, warning_of
from pymc_dapper.steps.variables import count_values, parameter_values

LARGE_TABLE = 100
"""From this number of cells on, a factor without terms causes a warning."""


@dataclass_state
class CountStepState(StepMethodState):
    """The state that a chain needs to continue exactly where it stopped."""

    sweeps_done: int
    tuning_sweeps: int
    total_sweeps: int
    moved: np.ndarray
    not_made: list[Change]
    integers: np.ndarray
    numbers: np.ndarray


class CountStep(Step):
    """Update latent tables of counts, given parameters and released values.

    A move shifts people between cells, or changes a cell's count. The new table is drawn by a slice
    sampler on the integers, along a line of possible tables. If all cells and sums are nearly
    exact, steps along many lines are proposed at once. Totals that a prior or an invariant fixes
    don't change. A latent total, such as the ``n`` of a Multinomial, follows its cells: pass it to
    the same step. The cost of a move depends on the terms of its cells, not on the number of
    people.

    Parameters
    ----------
    vars : variable or sequence of variables
        The counts: free Multinomial, Binomial, Poisson, NegativeBinomial, DirichletMultinomial,
        BetaBinomial or DiscreteUniform variables (or their value variables), of any shape.
    integrate : variable or sequence of variables, optional
        Conjugate parameters of the counts' prior, such as a Dirichlet's probabilities of a
        Multinomial. The step updates counts with these marginalised, then draws them given the
        counts. No other step may move them.
    model : Model, optional
        The model. Taken from the context if not given.
    rng : int, Generator, ..., optional
        Seed of the step. ``pm.sample`` passes each chain its own generator.
    blocked : bool, default True
        Whether several variables are updated by one step. Otherwise each gets a step of its own.
    compile_kwargs : dict, optional
        Passed on to PyMC's ``compile``. The mode must be one of numba's.
    initial_point : dict, optional
        Values of the model's value variables at which the reading is checked. Missing ones come
        from the model's own initial point.
    moves : array_like of int, shape (number of moves, number of cells), optional
        A Markov basis of the invariants, needed unless these are totals of disjoint or nested
        groups, the two margins of tables, or tables that agree on a margin. Cells are numbered in
        the order of the variables, each raveled.
    max_start_sweeps : int, default 1000
        A chain may start where the counts have zero density. Its first step then repeats sweeps
        until the density is positive, at most this many times.
    tree : bool, optional
        Whether to draw all counts at once if they lie on a tree (``describe()`` says so). Given the
        other variables, such draws are independent. By default this is done if it takes fewer
        operations per effective draw than moves, and if the counts' parameters are known or
        marginalised, so that messages are computed once. With True it is always done.

    Raises
    ------
    ReadingError
        If a variable isn't a count; if nothing in the model depends on the counts; if invariants
        contradict each other, or no moves are known that keep them and reach every table; if no
        counts fit the release; or if ``tree=True`` and counts don't lie on a tree, or can't be
        drawn on it.
    NotConjugateError
        If a parameter can't be marginalised.

    Warns
    -----
    UserWarning
        If a factor is evaluated as a whole in each move of a large table: names the operation and
        the cost.
    SamplerWarning
        After sampling, in PyMC's log: if a cell never moved in a chain, though the log-density
        would allow it.

    Attributes
    ----------
    sweep : CompiledCountSweep
        The compiled sweep.

    Notes
    -----
    The sampler statistics are ``count_accept`` and ``count_logp``. The first is the share of a
    sweep's possible moves that changed the table; a move along many directions always counts as
    possible. On a tree it says whether the table changed. The second is the log-density after the
    sweep of all factors of the counts, without terms that don't depend on them.

    If a chain starts where the counts break an invariant, or are impossible given the release, the
    first step replaces them and continues from there. In that iteration, earlier steps still use
    the old counts.

    Shared data (``pm.Data``) are read again when a chain starts.

    With many people and much noise, a parameter's conditional given the counts is much narrower
    than its posterior. A chain that draws from this conditional mixes slowly. With ``integrate``
    the step draws the counts with the parameter marginalised, then the parameter given the counts:
    a joint draw of both.

    References
    ----------
    Neal, R. M. (2003). Slice sampling. Annals of Statistics 31(3). Section 4.

    Klein, P. (2000). Finding the closest lattice vector when it's unusually close. Proceedings of
    the 11th ACM-SIAM Symposium on Discrete Algorithms. Moves of many cells at once.

    Diaconis, P., and Sturmfels, B. (1998). Algebraic algorithms for sampling from conditional
    distributions. Annals of Statistics 26(1). What moves connect tables of known margins.

    Dobra, A. (2003). Markov bases for decomposable graphical models. Bernoulli 9(6). What moves
    connect tables of some margins in common.

    Examples
    --------
    >>> with pm.Model() as model:
    ...     p = pm.Dirichlet("p", np.ones(4))
    ...     table = pm.Multinomial("table", n=1_000_000, p=p)
    ...     pmd.DiscreteGaussianMechanism(sigma=100).potential("privacy", table, released=counts)
    ...     idata = pm.sample(step=[CountStep([table])])
    """

    name = "counts"
    stats_dtypes_shapes = {  # noqa: RUF012 (PyMC's)
        "count_accept": (np.float64, []),
        "count_logp": (np.float64, []),
        WARNING_STAT: WARNING_TYPE,
    }
    _state_class = CountStepState
    _takes = "counts"
    _column = ("count_accept", ".0%", "Moved")
    _values = staticmethod(count_values)

    @tells_why
    def __init__(
        self,
        vars: Variable | Sequence[Variable],
        *,
        integrate: Variable | Sequence[Variable] = (),
        model: Model | None = None,
        rng: RandomGenerator = None,
        blocked: bool = True,
        compile_kwargs: dict[str, Any] | None = None,
        initial_point: PointType | None = None,
        moves: ArrayLike | None = None,
        max_start_sweeps: int = 1000,
        tree: bool | None = None,
    ):
        max_sweeps = whole_number(max_start_sweeps, "max_start_sweeps", at_least=1)
        if moves is not None:
            real_numbers(moves, "moves")
        self._wanted = None if tree is None else flag(tree, "tree")
        model, options, point = self._init(vars, model, rng, blocked, compile_kwargs, initial_point)
        counts, parameters = self._moved, parameter_values(integrate, model)
        if parameters and not blocked:
            raise ValueError("blocked=False: parameters are marginalised above all counts at once")
        self._will_move([*counts, *parameters])
        if self._reading is None:
            rvs = [model.values_to_rvs[value] for value in parameters]
            conditionals = [x for rv in rvs for x in read_conditionals(model, [rv])]
            self._reading = read_counts(model, counts, conditionals)
        self._given = Given(self._reading.parameters, CountData(self._reading, self._reading))
        self._givens = [self._given]
        self._starts = Starts(self._reading, max_sweeps)
        self._moves = moves_of(self._reading, moves)
        self._on_tree = read_tree(self._reading)
        if self._wanted and isinstance(self._on_tree, str):
            raise ReadingError(
                f"tree=True: the counts can't be drawn on a tree: {self._on_tree}. Leave tree out, "
                "and they are moved"
            )
        self._marginalised = None
        if parameters:
            self._marginalised = ConjugateStep.of_reading(
                self._reading.marginalised,
                parameters,
                model=model,
                compile_kwargs=options,
                initial_point=point,
            )
            self._givens += self._marginalised._givens
        self._check_releases = partial(check_releases, model, counts, "the counts")
        self._check_releases()
        # Refuse counts that can't have the known totals before anything is compiled.
        self._starts.with_known_totals(self._counts(point), self._given(point), ReadingError)
        self._when_read(partial(self._compile, options, point))

    def _compile(self, options: dict[str, Any], point: PointType) -> None:
        """Compile the sweep, find a possible start, and compare the sweep with the model."""
        self._stage("Compiling")
        counts, given, rng = self._counts(point), self._given(point), np.random.default_rng(0)
        agreeing = self._starts.with_known_totals(counts, given, ReadingError)
        self.sweep = compile_count_sweep(self._reading, self._moves, options, (agreeing, given))
        if any_impossible(self._reading, self.sweep, agreeing, given):
            self._moves = self._moves_around_impossible_tables()
            self.sweep = compile_count_sweep(self._reading, self._moves, options)
        if self._marginalised is not None:
            self._marginalised.compile()
        start = self._starts.possible(self.sweep, counts, given, rng, ReadingError)
        start = self._starts.near(self.sweep, start, given)
        self._found = counts, start
        self._first_tuning = check_sweep(self._reading, self.sweep, start, given)
        self._tree = choose_tree(
            self._reading, self._on_tree, self._wanted, self.sweep, start, given, options
        )
        self._start_chain(0, 0)
        if self._reading.wholes and self._reading.n_cells >= LARGE_TABLE:
            began = perf_counter()
            self.sweep(rng, counts, None, given)
            _warn_of_whole_evaluation(self._reading, perf_counter() - began)

    def _moves_around_impossible_tables(self) -> Moves:
        """Find moves that reach all linked tables if some are impossible."""
        try:
            return moves_of(self._reading, linked=False)
        except ReadingError:
            names = ", ".join(f"'{rv.name}'" for rv in self._reading.rvs)
            raise ReadingError(
                f"of {names}, some tables that agree on their margins have probability zero. "
                "CountStep doesn't know moves around these. Let no cell have probability zero, and "
                f"no noise have bounds; or {PASS_A_BASIS}"
            ) from None

    def describe(self) -> str:
        """Describe the reading.

        Returns
        -------
        str
            The counts, the terms of the log-density that depend on them, exact equations, and the
            moves of a sweep.
        """
        described = describe_counts(self._reading, self._moves)
        if self._tree is not None:
            described += "\nAll counts are drawn together, on their tree; moves find a start."
        if self._marginalised is None:
            return described
        return f"{described}\nMarginalised, and then drawn:\n  {self._marginalised.describe()}"

    def __repr__(self) -> str:
        """Summarise the reading."""
        return f"<CountStep: {summarise_counts(self._reading)}>"

    def _start_chain(self, tune: int, draws: int) -> None:
        self.sweeps_done = 0
        self.tuning_sweeps = tune
        self.expect(draws)
        self.moved = np.zeros(self._reading.n_cells, dtype=bool)
        self.not_made: list[Change] = []
        self.integers, self.numbers = self._first_tuning
        self._messages: tuple[list[np.ndarray], SolvedCounts] | None = None

    def expect(self, draws: int) -> None:
        """Expect so many iterations after tuning: unmoved counts are told of at the last."""
        self.total_sweeps = self.tuning_sweeps + draws

    def step(self, point: PointType) -> tuple[PointType, StatsType]:
        """Sweep over all cells; a chain's first step repeats this until the counts are possible."""
        given, counts = self._given(point), self._counts(point)
        if self.sweeps_done == 0:
            built_at, found = self._found
            start = found if np.array_equal(counts, built_at) else counts
            counts = self._starts.possible(self.sweep, start, given, self.rng, SamplingError)
        if self._tree is None:
            after, stats = self._sweep(counts, given)
        else:
            after, stats = self._draw_anew(self._tree, counts, given)
        self.sweeps_done += 1
        self.moved = self.moved | (after != counts)
        names = [count.name for count in self._reading.counts]
        new = dict(zip(names, by_variable(self._reading, after), strict=True))
        stats[WARNING_STAT] = self._report_unmoved(after, given)
        point = {**point, **new}
        if self._marginalised is not None:
            # Only here: the counts were drawn with the parameter marginalised.
            self._marginalised.rng = self.rng
            point, _ = self._marginalised.step(point)
        return point, [stats]

    def _draw_anew(
        self, tree: ModelTree, counts: np.ndarray, given: list[np.ndarray]
    ) -> tuple[np.ndarray, dict[str, Any]]:
        """Draw all counts on their tree; messages are kept while parameters don't change."""
        known = self._messages
        if known is None or not all(map(np.array_equal, known[0], given)):
            try:
                known = [np.copy(x) for x in given], tree.solve(counts, given)
            except NoTreeError as error:
                raise SamplingError(str(error)) from None
            self._messages = known
        after = tree.draw(self.rng, known[1])
        return after, {
            "count_accept": float(np.any(after != counts)),
            "count_logp": self.sweep.log_density(after, given),
        }

    def _sweep(
        self, counts: np.ndarray, given: list[np.ndarray]
    ) -> tuple[np.ndarray, dict[str, Any]]:
        """Move the counts."""
        measures = self._next_measure() == self.sweeps_done
        tuning = None if measures else Packed(self.integers, self.numbers)
        swept = self.sweep(self.rng, counts, tuning, given)
        if measures:
            self.integers, self.numbers = self.sweep.tune(counts, swept.curvatures)
        return swept.counts, {"count_accept": swept.moved, "count_logp": swept.log_density}

    def _next_measure(self) -> float:
        """Return the next of sweeps 0, 1, 2, 4, ... of tuning, while a chain finds its place."""
        done = self.sweeps_done
        due = 1 << (done - 1).bit_length() if done else 0
        return due if due < self.tuning_sweeps else inf

    @property
    def transitions(self) -> Sequence[Transition]:
        """The sweep, and the draws of marginalised parameters; none on a tree."""
        if self._tree is not None:
            return ()
        names = tuple(x.name for x in self._reading.counts)
        given = self.sweep.arguments([*self._given.names, *self._given.data.values])
        takes = (self.integers, self.numbers, *names, *given)
        n_found = 5 + self.sweep.structure.terms.size
        reports = (((n_found,), "float64"), ((self._reading.n_cells,), "bool"))
        own = Transition(self.sweep.update, takes, names, reports)
        return [own] if self._marginalised is None else [own, *self._marginalised.transitions]

    def ordinary(self) -> int:
        """Count iterations until curvatures are measured, or unmoved cells are looked for."""
        done = self.sweeps_done
        if done == 0 or not self.transitions:
            return 0
        ahead = self._next_measure() - done
        if not self.moved.all():
            due = (sweep for sweep in looks(self.total_sweeps) if sweep > done)
            ahead = min(ahead, next(due, inf) - done - 1)
        return int(min(ahead, sys.maxsize))

    def statistics(self, n: int, reports: Sequence[np.ndarray]) -> list[dict[str, Any]]:
        """Make the statistics of n sweeps."""
        return [
            {"count_accept": moved, "count_logp": log_density, WARNING_STAT: None}
            for moved, log_density in reports[0][:, [1, 3]].tolist()
        ]

    def passed(self, n: int, reports: Sequence[np.ndarray]) -> None:
        """Count n sweeps, and the cells that they moved."""
        self.sweeps_done += n
        self.moved = self.moved | reports[1].any(axis=0)

    def _report_unmoved(self, counts: np.ndarray, given: list[np.ndarray]) -> SamplerWarning | None:
        """At a chain's end, warn of cells that never moved in it although they could have."""
        due, done = looks(self.total_sweeps), self.sweeps_done
        if done not in due or self.moved.all():
            return None
        reading, moved, n_sweeps = self._reading, self.moved, self.total_sweeps
        log_density = partial(self.sweep.log_density, given=given)
        if done == due[0]:
            self.not_made = find_changes(reading, log_density, counts, moved, n_sweeps)
            return None
        self.not_made = look_again(self.not_made, log_density, counts, n_sweeps)
        if done < due[-1]:
            return None
        held = held_cells(self.not_made, reading, moved)
        if not held.any():
            return None
        return warning_of(
            f"CountStep: {name_cells(self._reading, held)} never moved in this chain of "
            f"{self.sweeps_done} sweeps, though the log-density would allow it. No move leads to "
            "other values, so the draws are not from the posterior. Something ties these cells to "
            "others in a way that the step doesn't recognise. State it with pmd.invariant, pass "
            "counts that belong together to one CountStep, or pass moves= that connect all "
            "tables"
        )

    def _counts(self, point: PointType) -> np.ndarray:
        return in_cells([point[x.name] for x in self._reading.counts])


def _warn_of_whole_evaluation(reading: CountReading, seconds: float) -> None:
    reasons = "; ".join(
        f"'{whole.factor}' isn't a sum of terms of few cells each, because {whole.reason}"
        for whole in reading.wholes
    )
    warnings.warn(
        f"CountStep has to evaluate factors of all cells in each move: {reasons}. A "
        f"sweep over the {reading.n_cells} cells takes about {seconds:.2g} s here, and grows with "
        "the square of their number. If you can, write it as a sum with a term for each released "
        "number",
        stacklevel=3,
    )
