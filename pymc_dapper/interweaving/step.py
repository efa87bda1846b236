"""InterweaveStep: parameters and records moved together, with the records' noise held fixed."""

import sys
import warnings
from collections.abc import Sequence
from functools import partial
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
from pymc_dapper.graphs.flat import split
from pymc_dapper.graphs.laws import has_density
from pymc_dapper.interweaving.compiled.moves import CompiledMoves, compile_moves
from pymc_dapper.interweaving.kernels.tuning import unfitted
from pymc_dapper.interweaving.reading.affine import (
    affine_records,
    noise_moves_affinely,
    read_affine,
)
from pymc_dapper.interweaving.reading.model import read_non_centred
from pymc_dapper.interweaving.reading.non_centred import NonCentredModel
from pymc_dapper.interweaving.reading.self_check import CheckedNoise, check_noise
from pymc_dapper.interweaving.tuner import Tuner
from pymc_dapper.steps.base import Given, Step, check_compiled
from pymc_dapper.steps.building import tells_why
from pymc_dapper.steps.data import SharedData
from pymc_dapper.steps.stats import WARNING_STAT, WARNING_TYPE, notice_of
from pymc_dapper.steps.variables import check_given, record_values


@dataclass_state
class InterweaveStepState(StepMethodState):
    """The state that a chain needs to continue exactly where it stopped."""

    tuner: Tuner


class InterweaveStep(Step):
    """Move parameters together with the records, the records' noise held fixed.

    At a small privacy budget, the conditional of parameters given the records is much narrower than
    their posterior, so chains that draw from it mix slowly. This step moves both. A record is a
    function of the parameters and of noise whose law doesn't depend on them, x_i = F^-1(u_i;
    theta). The step moves theta to theta' with the noise held fixed, so the records follow: x_i' =
    F^-1(F(x_i; theta); theta'). The records' prior cancels. The parameters' prior, the privacy
    mechanism and all other factors decide.

    If records have at most 16 values, and each has a released answer (randomised response), they
    are marginalised: theta moves given the release, with the noise of the records' conditional
    distribution held fixed. The same holds for normal records with a public measurement, such as w
    ~ Normal(a + b * x, s). Parameters of the measurement move, too.

    A vector of real numbers that is added to parameters, such as deviations to a level, follows
    them with the sum held fixed, unless its own law depends on them. Its prior then decides, too.

    If released sums are nearly exact, this isn't enough. If tuning then finds a long memory of
    parameters or sums, parameters also move together with the records' mean and the Cholesky
    factor of their covariance, with the standardised records held fixed. This affine group move
    shifts, stretches and shears all records alike (Liu and Sabatti 2000). The records must be
    continuous, without point masses. If they are normal or lognormal, their noise moves with the
    parameters in the same way.

    Use it together with a :class:`DapperStep` for the records and any other step for the parameters
    (``pmd.sample`` does). Each is exact alone; each is fast where another is slow.

    In a model without records, such as a table with all of them marginalised
    (:func:`pymc_dapper.tabulate`), it moves the parameters by themselves, and needs no other step.

    Parameters
    ----------
    vars : variable or sequence of variables
        The parameters: continuous free random variables (or their value variables). Those that the
        records' law doesn't depend on are left to other steps. Numbers of records
        (:func:`~pymc_dapper.present`) may be among them: they move with the parameters.
    records : variable or sequence of variables, optional
        The records that follow. Those whose prior doesn't depend on the parameters, directly or
        through other records, don't move. By default, no records follow.
    model : Model, optional
        The model. Taken from the context if not given.
    rng : int, Generator, ..., optional
        Seed of the step. ``pm.sample`` passes each chain its own generator.
    blocked : bool, default True
        Whether several parameters are moved together. Otherwise each gets a step of its own.
    compile_kwargs : dict, optional
        Passed on to PyMC's ``compile``. The mode must be one of numba's.
    initial_point : dict, optional
        Values of the model's value variables, to check the reading of the model at. Those not
        given are taken from the model's own initial point.
    moves : int, optional
        Moves per iteration after tuning, all with the noise held fixed. Chosen in tuning if not
        given; 4 if there is hardly any tuning.
    when_needed : bool, default False
        Whether to begin only if a parameter's autocorrelation time, measured after 40, 80, 160, ...
        iterations of tuning, is more than 2 iterations. Nothing is compiled before that, and
        nothing moves in a chain with less tuning. Without effect if the number of moves is given.
        :func:`assign_steps` sets it.

    Raises
    ------
    ReadingError
        If a variable isn't a parameter or a record, if no parameter moves any record, or if the
        records' distribution can't be written as a function of parameters and noise.

    Warns
    -----
    UserWarning
        At the end of tuning, if no other step has moved a parameter.

    Notes
    -----
    A move is an elliptical slice of a multivariate t distribution that is fitted to the parameters
    in tuning, and frozen after it (Nishihara et al. 2014). Tuning also chooses the numbers of moves
    in an iteration, 0 to 16 with the noise held fixed, and as many affine group moves of the
    records and of their noise: those that give the most effective draws of the slowest parameter
    per operation, or nearly so. Operations are counted, not timed. Affine group moves need 160
    iterations of tuning or more, counted from the first move on.

    A number n of records moves on a logarithmic scale, as log(n + u) with u uniform, drawn before
    each iteration. Absent records have noise, too: use the step after a :class:`DapperStep` that
    draws them.

    The sampler statistics are ``interweave_accept``, the share of evaluated points that were
    accepted (nan if no move was made), and ``interweave_moves``, the number of moves. If moves
    begin in tuning, PyMC's log says so, and tuning of the moves has the iterations that are left.

    The step owns the parameters, so PyMC adds no other step for them: pass one.

    References
    ----------
    Liu, J. S., and Sabatti, C. (2000). Generalised Gibbs sampler and multigrid Monte Carlo for
    Bayesian computation. Biometrika 87(2).

    Nishihara, R., Murray, I., and Adams, R. P. (2014). Parallel MCMC with generalized
    elliptical slice sampling. Journal of Machine Learning Research 15. Section 3.

    Yu, Y., and Meng, X.-L. (2011). To center or not to center: that is not the question.
    Journal of Computational and Graphical Statistics 20(3). Section 2.

    Examples
    --------
    >>> with pm.Model() as model:
    ...     mu = pm.Normal("mu", 0, 1)
    ...     x = pm.Normal("x", mu, 1, shape=100)
    ...     pm.Laplace("noisy_sum", pt.clip(x, -3, 3).sum(), 60, observed=35.0)
    ...     steps = [pmd.DapperStep([x]), pm.NUTS([mu]), pmd.InterweaveStep([mu], records=[x])]
    ...     idata = pm.sample(step=steps)
    """

    name = "interweave"
    stats_dtypes_shapes = {  # noqa: RUF012 (PyMC's)
        "interweave_accept": (np.float64, []),
        "interweave_moves": (np.int64, []),
        WARNING_STAT: WARNING_TYPE,
    }
    _state_class = InterweaveStepState

    @tells_why
    def __init__(
        self,
        vars: Variable | Sequence[Variable],
        *,
        records: Variable | Sequence[Variable] | None = None,
        model: Model | None = None,
        rng: RandomGenerator = None,
        blocked: bool = True,
        compile_kwargs: dict[str, Any] | None = None,
        initial_point: PointType | None = None,
        moves: int | None = None,
        when_needed: bool = False,
    ):
        self.moves = None if moves is None else whole_number(moves, "moves", at_least=0)
        self.when_needed = flag(when_needed, "when_needed") and moves is None
        model, options, point = self._init(vars, model, rng, blocked, compile_kwargs, initial_point)
        followers = []
        if records is not None:
            given = "InterweaveStep was given as records"
            check_given(records, given, "the records that are to follow")
            followers = record_values(records, model)
        reading = self._reading or read_non_centred(model, self._moved, followers, point)
        self._stage("Checking")
        checked = check_noise(reading, point)
        self._reading = reading
        self._given = self._given_of(reading)
        self._givens = [self._given]
        moving = {x.name for x in (*reading.parameters, *reading.numbers)}
        self._stay = [x for x in self._moved if x.name not in moving]
        self._will_move([x for x in self._moved if x.name in moving])
        # With room for absent records, these would move affinely, too. A sum is moved by itself.
        dense = [x for x in followers if has_density(model.values_to_rvs[x].owner)]
        not_affine = reading.numbers or reading.sums
        self._affine = [] if not_affine else affine_records(dense, point)
        self._options, self._point = options, point
        self._compiled: list[CompiledMoves] = []
        self._start_chain(0, 0)
        if not self.when_needed:
            self._when_read(partial(self._compile_next, checked))

    def _given_of(self, reading: NonCentredModel) -> Given:
        state = (*reading.parameters, *reading.numbers, *reading.records, *reading.given)
        names = self._quoted(self._reading.records or self._reading.parameters)
        return Given(state, SharedData(reading, f"the InterweaveStep for {names}"))

    def _moves_of(self, which: int) -> CompiledMoves:
        """Return moves of a kind; they may be compiled when they are first needed."""
        while which >= len(self._compiled):
            self._compile_in_chain(self._compile_next, own_mode=bool(self._options))
        return self._compiled[which]

    def _compile_next(self, checked: CheckedNoise | None = None) -> None:
        """Compile moves: the noise held fixed, then affine ones of records, then of noise."""
        self._stage("Compiling")
        reading, given = self._reading, self._given
        if self._compiled:
            of_noise = len(self._compiled) > 1
            reading = read_affine(reading, self._affine, self._point, of_noise)
            given = self._given_of(reading)
        dim = int(sum(np.prod(x.type.shape) for x in (*reading.moving, *reading.numbers)))
        counts = [x.name for x in reading.records if "int" in x.dtype]
        largest = max((float(np.max(self._point[x], initial=0)) for x in counts), default=0.0)
        move, costs = compile_moves(reading, self._options, largest)
        names = tuple(x.name for x in (*reading.parameters, *reading.numbers, *reading.records))
        moves = CompiledMoves(reading, move, costs, given, dim, names)
        self._check_compiled(moves, checked or check_noise(reading, self._point))
        self._compiled.append(moves)
        if given is not self._given:
            self._givens = [*self._givens, given]

    def _check_compiled(self, moves: CompiledMoves, checked: CheckedNoise) -> None:
        """Compare the compiled moves with the model's own log-density at a known state.

        PyTensor compiles at the first call. Here, forked workers inherit the result.
        """
        fit, rng = unfitted(np.zeros(moves.dim)), np.random.default_rng(0)
        n = len(moves.reading.numbers)
        uniforms = [*checked.uniforms, np.full(n, 0.5)] if n else checked.uniforms
        *_, path, [log_density] = moves.call({**checked.point}, uniforms, fit, 0, rng)
        log_density -= path[0, moves.dim - n :].sum()  # the Jacobian of a number's logarithm
        log_density -= moves.reading.log_volume(path[0, : moves.dim - n], np)
        if np.isfinite(log_density):
            what = "the compiled log-density is"
            check_compiled(what, float(log_density), checked.log_density, checked.tolerance)

    def describe(self) -> str:
        """Describe how the model was read.

        Returns
        -------
        str
            The parameters, the records that follow, and the factors that decide.
        """
        reading = self._reading
        factors = ", ".join(f"'{name}'" for name in reading.factors)
        decide = f"Factors that decide on a move: {factors}"
        names = reading.names(reading.records)
        if not names:
            return f"Moves {self._quoted(reading.parameters)}, which no records follow.\n{decide}"
        given = "" if reading.log_law is None else ", given what is known of each,"
        moving = self._quoted((*reading.parameters, *reading.numbers))
        fixed = [f"the noise of the records{given}"] if len(reading.sums) < len(names) else []
        fixed += [f"the sum with '{name}'" for name in reading.sums]
        lines = [
            f"Moves {moving} with {' and '.join(fixed)} held fixed.",
            f"Records that follow: {self._quoted(reading.records)}",
            decide,
        ]
        if self.when_needed:
            lines.append("Begins if tuning mixes poorly without")
        if self._affine and self.moves is None:
            names = [self._reading.model.values_to_rvs[x].name for x in self._affine]
            lines.append(
                "Moved with their mean and covariance, too, if tuning mixes poorly: "
                + ", ".join(f"'{name}'" for name in names)
            )
        if self._stay:
            names = self._quoted(self._stay)
            lines.append(
                f"Left to other steps, since the records' prior doesn't depend on it: {names}"
            )
        return "\n".join(lines)

    def __repr__(self) -> str:
        """Summarise how the model was read."""
        reading = self._reading
        parameters = ", ".join(reading.names((*reading.parameters, *reading.numbers)))
        records = ", ".join(reading.names(reading.records)) or "no records"
        return f"<InterweaveStep: {parameters}; {records} follow>"

    def _quoted(self, values: Sequence[Variable]) -> str:
        return ", ".join(f"'{name}'" for name in self._reading.names(values))

    def _start_chain(self, tune: int, draws: int) -> None:
        self.tuner = Tuner(tune, len(self._flat(self._point)), self.moves, waits=self.when_needed)

    @property
    def slower(self) -> float:
        """How much longer the memory of draws is than in tuning, which makes more moves."""
        return self.tuner.slower

    def step(self, point: PointType) -> tuple[PointType, StatsType]:
        """Move the parameters, and the records with them."""
        tuner = self.tuner
        if tuner.done == 0:
            tuner.fits[0] = unfitted(self._flat(point))
        numbers = tuner.to_make(lambda which: self._moves_of(which).costs)
        paths, evaluations = [], []
        for which, n_moves in enumerate(numbers):
            if n_moves > 0:
                point, path, times = self._make(which, point, n_moves)
                paths.append(path)
                evaluations.append(times)
        stats = _statistics(sum(numbers), sum(map(sum, evaluations)))
        if tuner.done < tuner.tune:
            stats[WARNING_STAT] = self._tune(point, paths, evaluations)
        else:
            tuner.done += 1
        return point, [stats]

    @property
    def transitions(self) -> Sequence[Transition]:
        """The moves of each kind, each after the draws of its random numbers."""
        found = []
        for which, n_moves in enumerate(self.tuner.numbers):
            if n_moves > 0:
                found += self._moves_of(which).transitions(n_moves, self.tuner.fits[which])
        return found

    def ordinary(self) -> int:
        """Count iterations after tuning, when moves are frozen; 0 in tuning."""
        if self.tuner.done < max(self.tuner.tune, 1):
            return 0
        making = (self._moves_of(which) for which, n in enumerate(self.tuner.numbers) if n > 0)
        return sys.maxsize if all(moves.in_code for moves in making) else 0

    def statistics(self, n: int, reports: Sequence[np.ndarray]) -> list[dict[str, Any]]:
        """Make the statistics of n iterations after tuning."""
        looked_at = sum((x[:, 1:].sum(axis=1) for x in reports), np.zeros(n)).astype(int)
        made = sum(self.tuner.numbers)
        return [_statistics(made, number) for number in looked_at.tolist()]

    def passed(self, n: int, reports: Sequence[np.ndarray]) -> None:
        """Count n iterations after tuning."""
        self.tuner.done += n

    def _make(
        self, which: int, point: PointType, n_moves: int
    ) -> tuple[PointType, np.ndarray, list[float]]:
        """Make moves of a kind; return their path, and how often each was evaluated, too."""
        moves = self._moves_of(which)
        reading = moves.reading
        uniforms = [self.rng.random(x.type.shape) for x in reading.uniforms]
        if reading.numbers:
            uniforms.append(self.rng.random(len(reading.numbers)))
        fit = self.tuner.fits[which]
        *values, path, outcome = moves.call(point, uniforms, fit, n_moves, self.rng)
        evaluations = outcome[1:].tolist()  # a few: faster than as an array
        if any(evaluations):
            point = {**point, **dict(zip(moves.names, values, strict=True))}
        return point, path, evaluations

    def _flat(self, point: PointType) -> np.ndarray:
        """Return all parameters' coordinates, and logarithms of numbers, half a record added."""
        reading = self._reading
        parts = [
            coordinates.of(np.asarray(point[x.name], dtype=np.float64), np)
            for coordinates, x in zip(reading.coordinates, reading.parameters, strict=True)
        ]
        parts += [np.log(np.ravel(point[x.name]) + 0.5) for x in self._reading.numbers]
        return np.concatenate(parts).astype(np.float64)

    def _tune(
        self, point: PointType, paths: Sequence[np.ndarray], evaluations: Sequence[list[float]]
    ) -> SamplerWarning | None:
        """Let the tuner look at an iteration; say so if moves begin."""
        tuner = self.tuner
        begins = tuner.watch(
            self._flat(point),
            paths,
            evaluations,
            [moves.costs for moves in self._compiled],
            partial(self._compile_more, point),
            len(point[self._affine[0].name]) if self._affine else 0,
        )
        if tuner.done == tuner.tune and tuner.unmoved.any() and self._reading.records:
            self._warn_that_it_is_alone(tuner.unmoved)
        if not begins:
            return None
        return notice_of(
            f"InterweaveStep: draws of {self._quoted(self._reading.parameters)} have a long "
            "memory, given the records. The rest of tuning also moves them together with the "
            "records. After tuning, only as many of these moves are made as pay, maybe none"
        )

    def _compile_more(self, point: PointType) -> list[np.ndarray]:
        """Compile the kinds that come next; return where affine ones begin."""
        if not self.tuner.numbers:
            self._moves_of(0)
            return []
        both = noise_moves_affinely(self._reading, self._affine)
        rng, starts = np.random.default_rng(0), []
        for which in (1, 2)[: 1 + both] if self._affine else ():
            moves = self._moves_of(which)
            *_, path, _ = moves.call(point, [], unfitted(np.zeros(moves.dim)), 0, rng)
            starts.append(path[0])
        return starts

    def _warn_that_it_is_alone(self, unmoved: np.ndarray) -> None:
        parameters = self._reading.parameters
        parts = split(unmoved, [x.type.shape for x in parameters])
        names = self._quoted([x for x, part in zip(parameters, parts, strict=True) if part.any()])
        warnings.warn(
            f"InterweaveStep alone has moved {names}. The draws are right, but at a large budget "
            "the released values fix most of what it moves, and it mixes slowly. Another step, "
            "such as pm.NUTS, is missing (pmd.assign_steps adds one), or stands still and diverges",
            stacklevel=2,
        )


def _statistics(made: int, looked_at: float) -> dict[str, Any]:
    accepted = made / looked_at if looked_at else np.nan
    return {"interweave_accept": accepted, "interweave_moves": made, WARNING_STAT: None}
