"""DapperStep: record-wise Metropolis updates of latent confidential records."""

from collections.abc import Sequence
from functools import partial
from math import isfinite
from time import perf_counter
from typing import Any

import numpy as np
from pymc import Model
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
from pymc_dapper.checks import flag, whole_number
from pymc_dapper.plausibility.check import check_releases
from pymc_dapper.records import refusals
from pymc_dapper.records.compiled.exchange import CompiledExchange, compile_exchange
from pymc_dapper.records.compiled.start import RecordStart
from pymc_dapper.records.compiled.sweep import AS_DRAWN, NEVER, CompiledSweep, compile_sweep
from pymc_dapper.records.long_memory import SHORTEST_CHAIN, LongMemory, looks
from pymc_dapper.records.never_moved import NeverMoved
from pymc_dapper.records.reading.description import describe_reading, of_people, summarise_reading
from pymc_dapper.records.reading.exchange_groups import read_exchange
from pymc_dapper.records.reading.local import read_local
from pymc_dapper.records.reading.model import read_model
from pymc_dapper.records.reading.near import read_near
from pymc_dapper.records.reading.self_check import CheckedState, check_reading
from pymc_dapper.records.reading.sufficient_statistics import SufficientStatistics
from pymc_dapper.records.walks import INDEPENDENT, Walks
from pymc_dapper.steps.base import Given, Step, arrays_of, check_compiled
from pymc_dapper.steps.building import tells_why
from pymc_dapper.steps.data import SharedData
from pymc_dapper.steps.stats import (
    EXCHANGE_STAT,
    WARNING_STAT,
    WARNING_TYPE,
    record_stat,
    warning_of,
)
from pymc_dapper.steps.variables import record_values

POWERS = frozenset(32**k for k in range(8))
"""At these draws digits are checked in Python, which is slow."""

LOOKED_FOR_AT = (1, 30)
"""After these sweeps without possible records, a chain searches for some."""
MOST_SEARCHES = 3
"""Number of searches of a chain at most. Where totals are known, each sweep may search."""


@dataclass_state
class DapperStepState(StepMethodState):
    """The state that a chain needs to continue exactly where it stopped."""

    sweeps_done: int
    tuning_sweeps: int
    walks: Walks


class DapperStep(Step):
    """Update latent confidential records one by one, given parameters and released values.

    Each sweep proposes each record from its prior given the parameters. All other factors of the
    model's log-density, mainly the privacy mechanism, decide whether it is accepted. The step finds
    these factors in the model. If they depend on sums over the records, it caches the sums: an
    update then costs one evaluation of the mechanism, whatever the number of records.

    Parameters
    ----------
    vars : variable or sequence of variables
        The records: free random variables (or their value variables) of the model, whose first axis
        runs over the records.
    model : Model, optional
        The model. Taken from the context if not given.
    rng : int, Generator, ..., optional
        Seed of the step. ``pm.sample`` passes each chain its own generator.
    blocked : bool, default True
        Whether several variables are updated together, record by record. Otherwise each gets its
        own step.
    compile_kwargs : dict, optional
        Passed on to PyMC's ``compile``. The mode must be one of numba's.
    initial_point : dict, optional
        Values of the model's value variables at which the reading is checked. Missing ones come
        from the model's own initial point.
    track_records : bool, default False
        Record which proposals were accepted, a byte for each record and draw, for
        :func:`pymc_dapper.diagnostics.record_acceptance`.
    allow_full_evaluation : bool, default False
        A factor that isn't a function of sums over records, such as one of their median, is
        evaluated from all records for each record's update. With 1,000 records or more this must be
        allowed here.
    max_start_sweeps : int, default 1000
        A chain may start where the released value has zero density. Its first step then repeats
        sweeps until the density is positive, at most this many times. These sweeps accept all
        proposals.

    Raises
    ------
    ReadingError
        If a variable isn't a record, if nothing in the model depends on the records, if the model's
        log-density depends on them in an unknown way, or if it needs full evaluations for too many
        records.
    TypeError, ValueError
        If another argument can't be used: the message names it.

    Warns
    -----
    UserWarning
        If a factor needs full evaluations: names the operation and the cost.
    SamplerWarning
        In PyMC's log. After tuning: if records never moved, and no change of a single one is
        possible. At the end of a chain of 200 draws or more: if the sums that mechanisms depend on
        have hardly any effective draws.

    Attributes
    ----------
    sweep : CompiledSweep
        The compiled sweep.

    Notes
    -----
    The sampler statistics are ``dapper_accept``, the share of accepted proposals in the sweep, and
    ``dapper_mechanism_logp``, the log-density after the sweep of all factors of the records except
    their prior. An acceptance near 1 is no sign of good mixing: at a small privacy budget every
    proposal is accepted, but parameters and records follow each other slowly.

    *Counts.* Whole numbers that each have a noisy answer, such as zero-inflated counts of areas,
    are proposed near their present values, and from their prior. ``dapper_accept`` is then 1,
    unless other factors decide.

    *Exchanges.* If sums over the records are known exactly (:func:`~pymc_dapper.invariant`, or
    another equality that makes the log-density minus infinity), no record can change alone. After
    each sweep, pairs of records then change together and keep these sums. The statistic
    ``dapper_exchange_accept`` is the share of accepted exchanges.

    *Walks.* If tuning accepts fewer than 3 of 10 proposals, and the sums of the mechanisms have a
    long memory, records are proposed near their present values; each fourth draw also proposes
    independently. This works for a normal, lognormal, multivariate normal, uniform or Student t
    prior. Normal noise walks as an autoregression, z' = sqrt(1 - r^2) z + r e, which keeps the
    prior. The reach r and the number of such sweeps in a draw are chosen in tuning of 100 draws or
    more, then fixed. Records of an unknown number (:class:`SizeStep`) don't walk: absent ones must
    be drawn independently. If a draw makes several sweeps, ``dapper_accept`` and ``track_records``
    describe the last.

    Shared data (``pm.Data``) are read again when a chain starts, so the step remains valid after
    ``pm.set_data``.

    References
    ----------
    Ju, N., Awan, J. A., Gong, R., and Rao, V. A. (2022). Data augmentation MCMC for Bayesian
    inference from privatized data. Advances in Neural Information Processing Systems 35.
    Algorithm 1.

    Neal, R. M. (1998). Regression and classification using Gaussian process priors. Bayesian
    Statistics 6. Section 5.

    Examples
    --------
    >>> with pm.Model() as model:
    ...     p = pm.Dirichlet("p", np.ones(4))
    ...     record = pm.Categorical("record", p=p, shape=400)
    ...     table = pt.eye(4)[record].sum(axis=0)
    ...     pm.Potential("privacy", -0.5 * (((released - table) / 6.32) ** 2).sum())
    ...     idata = pm.sample(step=[pmd.DapperStep([record])])
    """

    name = "dapper"
    stats_dtypes_shapes = {  # noqa: RUF012 (PyMC's)
        "dapper_accept": (np.float64, []),
        "dapper_mechanism_logp": (np.float64, []),
        WARNING_STAT: WARNING_TYPE,
    }
    _state_class = DapperStepState
    _takes = "records"
    _column = ("dapper_accept", ".0%", "Accepted")
    _values = staticmethod(record_values)

    @tells_why
    def __init__(
        self,
        vars: Variable | Sequence[Variable],
        *,
        model: Model | None = None,
        rng: RandomGenerator = None,
        blocked: bool = True,
        compile_kwargs: dict[str, Any] | None = None,
        initial_point: PointType | None = None,
        track_records: bool = False,
        allow_full_evaluation: bool = False,
        max_start_sweeps: int = 1000,
    ):
        self.max_start_sweeps = whole_number(max_start_sweeps, "max_start_sweeps", at_least=1)
        self.track_records = flag(track_records, "track_records")
        flag(allow_full_evaluation, "allow_full_evaluation")
        model, options, point = self._init(vars, model, rng, blocked, compile_kwargs, initial_point)
        reading = self._reading or read_model(model, self._moved, point)
        refusals.check_full_evaluation(reading, reading.evaluated_whole, allow_full_evaluation)
        self._stage("Checking")
        checked = check_reading(reading, point)
        latent = f"{reading.n_records} records"
        self._check_releases = partial(check_releases, model, self._moved, latent)
        self._check_releases()
        self._pairs = read_exchange(reading, point)
        self._start: RecordStart | None = None
        if self._pairs is not None:
            refusals.check_full_evaluation(reading, reading.full_factors, allow_full_evaluation)
            self._add_stat(EXCHANGE_STAT, np.float64)
        elif not reading.draws_anew:
            reading = read_near(reading)
        if track_records:
            first = model.values_to_rvs[self._moved[0]]
            self._record_stat = record_stat(model.free_RVs.index(first), first.name)
            self._add_stat(self._record_stat, np.bool_, reading.n_records)
        self._reading, self._point = reading, point
        data = SharedData(reading, f"the DapperStep for the records {reading.quoted_names}")
        self._given = Given(reading.parameters, data)
        self._givens = [self._given]
        self._record_names = [x.name for x in reading.records]
        # Evaluated as in the model, or in single precision, it is no test of digits.
        tested = reading.additive_factors and not reading.evaluated_whole and checked.is_double
        self._as_written = checked.log_density if tested else None
        self._start_chain(0, 0)
        self._when_read(partial(self._compile, options, checked))

    def _compile(self, options: dict[str, Any], checked: CheckedState) -> None:
        """Compile the sweep, and compare it with the model."""
        self._stage("Compiling")
        reading, point = self._reading, self._point
        # For the sweep with walks, if it is needed; large arrays aren't kept.
        self._options, self._checked = options, checked._replace(records=self._records(point))
        self._walk: CompiledSweep | None = None
        self._statistics: SufficientStatistics | None = None
        self.sweep = compile_sweep(reading, options, tell_accepted=self.track_records)
        self.exchange: CompiledExchange | None = None
        if self._pairs is not None:
            self.exchange = compile_exchange(reading, self._pairs, options)
        # PyTensor compiles at the first call. Here, forked workers inherit the result.
        self._update(self._records(point), self._given(point), np.random.default_rng(0))
        self._check_compiled(checked, self._given(point))
        if reading.evaluated_whole or (self.exchange is not None and reading.full_factors):
            began = perf_counter()
            self._update(self._records(point), self._given(point), np.random.default_rng(0))
            refusals.warn_of_full_evaluation(reading, perf_counter() - began)

    @property
    def transitions(self) -> Sequence[Transition]:
        """The sweep; none if an iteration needs more than a sweep."""
        reading, sweep = self._reading, self.sweep
        if self._is_more_than_a_sweep():
            return ()
        names = tuple(self._record_names)
        n_present = sweep.n_records if reading.number is None else reading.number.name
        given = sweep.arguments([*self._given.names, *self._given.data.values])
        takes = (n_present, AS_DRAWN, *names, *given)
        reports: list[tuple[tuple[int, ...], str]] = [((2,), "float64")]
        if self.track_records:
            reports.append(((reading.n_records,), "bool"))
        return [Transition(sweep.function, takes, names, tuple(reports))]

    def _is_more_than_a_sweep(self) -> bool:
        """Whether an iteration also exchanges pairs, or checks digits."""
        return self.exchange is not None or self.sweep.as_written is not None

    def ordinary(self) -> int:
        """Count iterations until the next check of the chain; 0 while records may begin to walk."""
        done, tune = self.sweeps_done, self.tuning_sweeps
        watched = self._never_moved is not None or not self.walks.are_tuned(done)
        if done == 0 or watched or self._is_more_than_a_sweep():
            return 0
        if done < tune:
            return tune - done
        drawn = done - tune
        return min(x for x in self._looks if x > drawn) - drawn - 1

    def statistics(self, n: int, reports: Sequence[np.ndarray]) -> list[dict[str, Any]]:
        """Make the statistics of n sweeps."""
        stats = [
            {"dapper_accept": accept, "dapper_mechanism_logp": logp, WARNING_STAT: None}
            for accept, logp in reports[0].tolist()
        ]
        if self.track_records:
            for each, accepted in zip(stats, reports[1], strict=True):
                each[self._record_stat] = accepted
        return stats

    def passed(self, n: int, reports: Sequence[np.ndarray]) -> None:
        """Count n sweeps."""
        self.sweeps_done += n

    def _check_compiled(self, checked: CheckedState, given: list[np.ndarray]) -> None:
        """Compare the compiled sweep with the model's own log-density."""
        rng = np.random.default_rng(0)
        self._compare(checked, self._update(checked.records, given, rng, by=NEVER))
        self._compare(checked, self._update(checked.records, given, rng))

    def _compare(self, checked: CheckedState, after: tuple[np.ndarray, ...]) -> None:
        records, (_, compiled, *_) = after[: len(self._moved)], after[len(self._moved)]
        expected = checked.log_density(records, checked.parameters)
        what = "the compiled sweep gives the log-density"
        check_compiled(what, compiled, expected, checked.tolerance)

    def _check_digits(self, as_written: float, computed: float, rounding: float = 0.0) -> None:
        refusals.check_digits(self._reading, as_written, computed, rounding)

    @property
    def factors(self) -> list[str]:
        """Names of the log-density's factors that depend on the records, except their prior."""
        return [factor.name for factor in self._reading.factors]

    def records_of_people(self) -> list[str]:
        """Names of the variables with a value for each of many people.

        Returns
        -------
        list of str
            All records, except counts that are used entry by entry: the cells of a table.
        """
        return of_people(self._reading)

    def describe(self) -> str:
        """Describe how the model was read.

        Returns
        -------
        str
            The records and their proposals, the factors that depend on them, the cached sums, and
            the cost of a sweep.
        """
        described = describe_reading(self._reading, self._pairs)
        number = self._reading.number
        if number is None:
            return described
        names = {x.name: rv.name for rv, x in self._reading.model.rvs_to_values.items()}
        return (
            f"{described}\nOnly the first '{names[number.name]}' records are decided on. No "
            "factor depends on the others, and they are drawn from their prior."
        )

    def __repr__(self) -> str:
        """Summarise the reading."""
        return f"<DapperStep: {summarise_reading(self._reading)}>"

    def _data_read(self) -> None:
        if self._pairs is not None and self._reading.data:
            now = read_exchange(self._reading, self._point)
            if now is None or not now.pairs_as(self._pairs):
                names = ", ".join(f"'{name}'" for name in dict.fromkeys(self._pairs.known.factors))
                raise ValueError(
                    f"shared data changed the contributions of the records "
                    f"{self._reading.quoted_names} to {names}: build a new DapperStep"
                )

    def _start_chain(self, tune: int, draws: int) -> None:
        self._never_moved: NeverMoved | None = None
        self._long_memory: LongMemory | None = None
        self.sweeps_done = 0
        self.tuning_sweeps = tune
        self.expect(draws)
        # Absent records must be drawn independently.
        tuned = 0 if self._reading.draws_anew else tune
        self.walks = Walks(tuned, self._reading.n_records, len(self._reading.parameters))
        self._searches = 0

    def expect(self, draws: int) -> None:
        """Expect so many iterations after tuning: look at the chain evenly over them."""
        seen = looks(draws) if draws >= SHORTEST_CHAIN else []
        self._draws, self._looks = draws, POWERS.union(seen)

    def step(self, point: PointType) -> tuple[PointType, StatsType]:
        """Update all records; a chain's first step repeats this until the state is possible."""
        given, before = self._given(point), self._records(point)
        number = self._reading.number
        n_present = None if number is None else np.asarray(point[number.name])
        after = self._sweeps(before, given, n_present)
        if self.sweeps_done == 0:
            after = self._begin_with(after, given, n_present)
        records = after[: len(before)]
        accept, logp, *exchanged = after[len(before)].tolist()
        self.sweeps_done += 1
        if self.sweeps_done <= self.walks.tune:
            of = given[: len(self._reading.parameters)]
            self.walks.watch(
                self.sweeps_done,
                accept,
                before,
                records,
                sees=lambda x: self._sufficient_statistics()(x, of),
                can=lambda: self._walking_sweep() is not None,
            )
        warning, drawn = None, self.sweeps_done - self.tuning_sweeps
        if drawn <= 0 or drawn in self._looks or self.sweep.as_written is not None:
            warning = self._look_at(drawn, records, given, accept, logp)
        stats = {"dapper_accept": accept, "dapper_mechanism_logp": logp, WARNING_STAT: warning}
        if exchanged:
            [stats[EXCHANGE_STAT]] = exchanged
        if self.track_records:
            stats[self._record_stat] = after[-1]
        return {**point, **dict(zip(self._record_names, records, strict=True))}, [stats]

    def _sweeps(
        self, records: Sequence[np.ndarray], given: list[np.ndarray], n_present: np.ndarray | None
    ) -> tuple[np.ndarray, ...]:
        """Sweep once, or walk the chosen number of times; each fourth iteration does both."""
        after = tuple(records)
        if self.walks.number == 0 or self.sweeps_done % INDEPENDENT == 0:
            after = self._update(records, given, self.rng, n_present)
        for _ in range(self.walks.number):
            walking = self._walking_sweep()
            records = after[: len(records)]
            after = self._update(records, given, self.rng, n_present, walking=walking)
        return after

    def _begin_with(
        self, after: tuple[np.ndarray, ...], given: list[np.ndarray], n_present: np.ndarray | None
    ) -> tuple[np.ndarray, ...]:
        """Sweep until the state is possible, and watch the chain from there."""
        n, sweeps = len(self._record_names), 1
        log_priors = self._reading.in_python(self._reading.log_priors)
        parameters = given[: len(self._reading.parameters)]
        # A given start may be impossible, and so may all values of a record. Proposals are
        # possible.
        while not isfinite(sum([after[n][1], *log_priors(*after[:n], *parameters)])):
            if sweeps == self.max_start_sweeps:
                raise refusals.impossible_start(self._reading, sweeps, parameters)
            records: Sequence[np.ndarray] = after[:n]
            if self.exchange is None and sweeps in LOOKED_FOR_AT:
                records = self._where_possible(records, given, self.rng)
            after = self._update(records, given, self.rng, n_present)
            sweeps += 1
        exempt = np.zeros(self._reading.n_records, dtype=bool)
        if self.exchange is not None:
            exempt = self.exchange.exchange.groups >= 0
        watch = NeverMoved(self._reading, exempt, after[:n], self.tuning_sweeps)
        self._never_moved = None if watch.is_done else watch
        return after

    def _look_at(
        self,
        drawn: int,
        records: Sequence[np.ndarray],
        given: list[np.ndarray],
        accept: float,
        logp: float,
    ) -> SamplerWarning | None:
        """Refuse lost digits; warn of records that never move, after tuning, and of slow ones."""
        parameters = given[: len(self._reading.parameters)]
        if drawn > 0 and self.sweep.as_written is not None:
            self._check_digits(float(self.sweep.as_written(*records, *given)[0]), logp)
        elif drawn in POWERS and self._as_written is not None:
            as_written = self._as_written(records, parameters)
            self._check_digits(as_written, logp, refusals.ROUNDING * abs(as_written))
        if drawn == 1 and self._draws >= SHORTEST_CHAIN:  # tuning has chosen how many come
            self._long_memory = LongMemory(
                self._reading,
                self._sufficient_statistics(),
                self.tuning_sweeps,
                self._draws,
                None if self._pairs is None else self._pairs.known,
            )
        message = None
        if self._never_moved is not None:
            message = self._never_moved.look(self.sweeps_done, records, parameters)
            if self._never_moved.is_done:
                self._never_moved = None
        elif self._long_memory is not None:
            message = self._long_memory.look(self.sweeps_done, records, parameters, accept)
        return None if message is None else warning_of(message)

    def _sufficient_statistics(self) -> SufficientStatistics:
        if self._statistics is None:
            self._statistics = SufficientStatistics(self._reading)
        return self._statistics

    def _walking_sweep(self) -> CompiledSweep | None:
        """Compile the walking sweep when it is first needed; None if no records can walk."""
        if self._walk is None:
            reading = read_local(self._reading)
            if reading is None:
                return None
            sweep = compile_sweep(reading, self._options, tell_accepted=self.track_records)
            checked = self._checked
            given = [*self._given(self._point), np.array(1.0)]
            rng = np.random.default_rng(0)
            self._compare(checked, sweep.update(rng, checked.records, given, by=NEVER))
            self._walk = sweep
        return self._walk

    def _records(self, point: PointType) -> list[np.ndarray]:
        return arrays_of(point, self._record_names)

    def _update(
        self,
        records: Sequence[np.ndarray],
        given: list[np.ndarray],
        rng: np.random.Generator,
        n_present: np.ndarray | None = None,
        walking: CompiledSweep | None = None,
        by: float = AS_DRAWN,
    ) -> tuple[np.ndarray, ...]:
        """Make one sweep; return the records and the rest of :meth:`CompiledSweep.update`.

        With exchanges, the share of accepted ones stands beside the log-density.
        """
        try:
            if walking is None:
                after = self.sweep.update(rng, records, given, n_present, by=by)
            else:
                given_reach = [*given, np.array(self.walks.reach)]
                after = walking.update(rng, records, given_reach, n_present)
            if self.exchange is None or by == NEVER:
                return after
            return self._exchange(self.exchange, after, given, rng)
        except np.linalg.LinAlgError as error:
            raise refusals.singular(self._reading, error) from error

    def _where_possible(
        self, records: Sequence[np.ndarray], given: list[np.ndarray], rng: np.random.Generator
    ) -> list[np.ndarray]:
        """Return records that make the released values possible, if the search finds them."""
        if self._searches == MOST_SEARCHES:  # there may be none
            return list(records)
        self._searches += 1
        if self._start is None:
            self._start = RecordStart(self._reading, self._pairs)
        return self._start(rng, records, given[: len(self._reading.parameters)])

    def _exchange(
        self,
        exchange: CompiledExchange,
        after: tuple[np.ndarray, ...],
        given: list[np.ndarray],
        rng: np.random.Generator,
    ) -> tuple[np.ndarray, ...]:
        """Let pairs of records exchange after a sweep."""
        n = len(self._moved)
        records: Sequence[np.ndarray] = after[:n]
        (accept, logp), *accepted = after[n:]
        if not isfinite(logp):
            records = self._where_possible(records, given, rng)
        *exchanged, (share, logp) = exchange.update(rng, records, given)
        for x, new in zip(records, exchanged, strict=True):
            for each in accepted:
                each |= (x != new).reshape(len(x), -1).any(axis=1)
        return (*exchanged, np.array([accept, logp, share]), *accepted)
