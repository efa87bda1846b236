"""InterweaveStep: parameters and records moved together, with the records' noise held fixed."""

import warnings
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
from pymc.model import Model
from pytensor.graph.basic import Variable

from pymc_dapper.backend.internals import (
    PointType,
    RandomGenerator,
    StatsType,
    StepMethodState,
    dataclass_state,
)
from pymc_dapper.checks import whole_number
from pymc_dapper.interweaving.compiled.moves import compile_moves
from pymc_dapper.interweaving.kernels.moves import draw_variates
from pymc_dapper.interweaving.kernels.tuning import (
    DEFAULT_MOVES,
    FIRST_FIT,
    MAX_MOVES,
    MIN_MEASURED,
    best_number_of_moves,
    fit_draws,
    moves_waste_time,
    unfitted,
)
from pymc_dapper.interweaving.reading import read_non_centred
from pymc_dapper.interweaving.reading.self_check import CheckedNoise, check_noise
from pymc_dapper.steps.base import Given, Step, miscompiled
from pymc_dapper.steps.building import tells_why
from pymc_dapper.steps.data import SharedData
from pymc_dapper.steps.variables import check_given, record_values


@dataclass_state
class InterweaveStepState(StepMethodState):
    """What a chain needs to go on exactly where it stopped."""

    steps_done: int
    tuning_steps: int
    n_moves: int
    mean: np.ndarray
    factor: np.ndarray
    tuning_paths: list[np.ndarray]
    tuning_evaluations: list[list[int]]


class InterweaveStep(Step):
    """Move parameters together with the records, the records' own randomness held fixed.

    A record is a function of the parameters and of noise that knows nothing of them,
    x_i = F^-1(u_i; theta). Given the records, theta can move only as far as they allow, and if the
    privacy budget is small, that is hardly at all compared with how little the released values say
    of it. This step moves theta to theta' with the noise held fixed, so that the records follow:
    x_i' = F^-1(F(x_i; theta); theta'). The records' prior then has no say; the parameters' prior,
    the privacy mechanism and whatever else depends on the parameters or the records decide.

    Records with at most 16 values, of each of which something was released by itself (randomised
    answers), are integrated out: theta moves against what was released, with the noise of the
    records' conditional distribution held fixed in the place of their prior's.

    Use it beside a :class:`DapperStep` for the records and any other step for the parameters
    (``pmd.sample`` does). Each is exact by itself; what one does slowly, another does fast.

    Of a model without records, such as a table with all of them integrated out
    (:func:`pymc_dapper.tabulate`), it moves the parameters by themselves, and needs no other step.

    Parameters
    ----------
    vars : variable or sequence of variables
        The parameters: continuous free random variables (or their value variables). Those that the
        records' prior doesn't depend on are left to other steps.
    records : variable or sequence of variables, optional
        The records that are to follow. Those whose prior doesn't depend on the parameters, directly
        or through other records, stay as they are. Left out, nothing follows.
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
        Moves per iteration after tuning. Chosen in tuning if not given; 4 if there is hardly any.

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
    in tuning, and frozen after it (Nishihara et al. 2014). How many moves an iteration makes, from
    0 to 8, is chosen in tuning, too: as many as give the most effective draws for the evaluations
    they cost. Where they take longer than all else in tuning and the other steps do well, tuning
    ends early, with 0.

    The sampler statistics are ``interweave_accept``, the share of the points looked at that were
    accepted (nan if no move was made), and ``interweave_moves``, the number of moves.

    The step owns the parameters, so PyMC adds no other step for them: pass one.

    References
    ----------
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
    }
    _state_class = InterweaveStepState
    _column = ("interweave_moves", "", "Interweaving moves")

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
    ):
        self.moves = None if moves is None else whole_number(moves, "moves", at_least=0)
        model, options, point = self._begin(
            vars, model, rng, blocked, compile_kwargs, initial_point
        )
        followers = []
        if records is not None:
            check_given(
                records, "InterweaveStep was given as records", "the records that are to follow"
            )
            followers = record_values(records, model)
        reading = self._reading or read_non_centred(model, self._moved, followers, point)
        self._stage("Checking")
        checked = check_noise(reading, point)
        self._reading = reading
        state = (*reading.parameters, *reading.records, *reading.given)
        names = self._quoted(reading.records or reading.parameters)
        data = SharedData(reading, f"the InterweaveStep for {names}")
        self._given = Given(state, data)
        self._givens = [self._given]
        self._moving_names = [x.name for x in (*reading.parameters, *reading.records)]
        self._uniform_shapes = [x.type.shape for x in reading.uniforms]
        moving = {x.name for x in reading.parameters}
        self._will_move([x for x in self._moved if x.name in moving])
        self._dim = int(sum(np.prod(x.type.shape) for x in reading.parameters))
        self._n_records = sum(int(np.prod(x.type.shape)) for x in reading.records)
        self._start_chain(0, 0)
        self._when_read(partial(self._compile, options, checked, point))

    def _compile(self, options: dict[str, Any], checked: CheckedNoise, point: PointType) -> None:
        """Compile the moves, and compare them with the model."""
        self._stage("Compiling")
        self._move = compile_moves(self._reading, compile_kwargs=options)
        self._check_compiled(checked, point)

    def _check_compiled(self, checked: CheckedNoise, point: PointType) -> None:
        """Compare what was compiled with the model's own log-density at a known state.

        PyTensor compiles at the first call. Here, forked workers inherit the result.
        """
        names = [x.name for x in self._reading.records]
        state = {**point, **dict(zip(names, checked.records, strict=True))}
        rng = np.random.default_rng(0)
        *_, [log_density] = self._call(state, checked.uniforms, unfitted(self._flat(state)), 0, rng)
        if np.isfinite(log_density) and not checked.agrees(float(log_density)):
            raise miscompiled(
                "the compiled log-density is", float(log_density), checked.log_density
            )

    def describe(self) -> str:
        """Describe how the model was read.

        Returns
        -------
        str
            The parameters, the records that follow, and the factors that decide.
        """
        reading = self._reading
        decide = "Factors that decide: " + ", ".join(f"'{name}'" for name in reading.factors)
        if not reading.records:
            return f"Moves {self._quoted(reading.parameters)}, which no records follow.\n{decide}"
        given = "" if reading.log_law is None else ", given what is known of each,"
        lines = [
            f"Moves {self._quoted(reading.parameters)} with the noise of the records{given} held "
            "fixed.",
            f"Records that follow: {self._quoted(reading.records)}",
            decide,
        ]
        if reading.left_alone:
            names = ", ".join(f"'{name}'" for name in reading.left_alone)
            lines.append(
                f"Left to other steps, since the records' prior doesn't depend on it: {names}"
            )
        return "\n".join(lines)

    def __repr__(self) -> str:
        """Summarise how the model was read."""
        reading = self._reading
        parameters = ", ".join(reading.names(reading.parameters))
        records = ", ".join(reading.names(reading.records)) or "no records"
        return f"<InterweaveStep: {parameters}; {records} follow>"

    def _quoted(self, values: Sequence[Variable]) -> str:
        return ", ".join(f"'{name}'" for name in self._reading.names(values))

    def _start_chain(self, tune: int, draws: int) -> None:
        self.steps_done = 0
        self.tuning_steps = tune
        self.n_moves = DEFAULT_MOVES if self.moves is None else self.moves
        self.mean, self.factor = np.zeros(self._dim), np.eye(self._dim)
        self._tuning_moves = max(self.n_moves, MAX_MOVES)
        self._forget_paths()

    def step(self, point: PointType) -> tuple[PointType, StatsType]:
        """Move the parameters, and the records with them."""
        if self.steps_done == 0:
            self.mean, self.factor = unfitted(self._flat(point))
        tuning = self.steps_done < self.tuning_steps
        n_moves = self._tuning_moves if tuning else self.n_moves
        new, looked_at = point, 0
        if n_moves > 0:
            uniforms = [self.rng.random(shape) for shape in self._uniform_shapes]
            fit = self.mean, self.factor
            *values, path, outcome = self._call(point, uniforms, fit, n_moves, self.rng)
            _, *evaluations = outcome.tolist()
            looked_at = sum(evaluations)
            if looked_at > 0:
                new = point.copy()
                new.update(zip(self._moving_names, values, strict=True))
            if tuning:
                self.tuning_paths.append(path)
                self.tuning_evaluations.append([int(times) for times in evaluations])
        self.steps_done += 1
        if tuning:
            self._tune()
        accept = n_moves / looked_at if looked_at else np.nan
        return new, [{"interweave_accept": accept, "interweave_moves": n_moves}]

    def _call(
        self,
        point: PointType,
        uniforms: list[np.ndarray],
        fit: tuple[np.ndarray, np.ndarray],
        n_moves: int,
        rng: np.random.Generator,
    ) -> tuple[Any, ...]:
        variates = draw_variates(rng, n_moves, self._dim)
        return self._move(*self._given(point), *uniforms, *fit, *variates)

    def _flat(self, point: PointType) -> np.ndarray:
        parts = [np.ravel(point[x.name]) for x in self._reading.parameters]
        return np.concatenate(parts).astype(np.float64)

    def _tune(self) -> None:
        """Fit the t distribution, more and more rarely; in the second half, count what pays."""
        done, half = self.steps_done, self.tuning_steps // 2
        if done == self.tuning_steps:
            self._freeze()
        elif self.moves is None and _is_doubling(done, MIN_MEASURED) and self._wastes_time():
            self.n_moves, self.tuning_steps = 0, done
            self._forget_paths()
        elif 2 < done == half or (done < half and _is_doubling(done, FIRST_FIT)):
            self._fit(np.array(self.tuning_paths[done // 2 :])[:, -1])

    def _wastes_time(self) -> bool:
        """Whether what was seen of late says that moves aren't worth what tuning them costs."""
        done = self.steps_done
        return moves_waste_time(
            *self._measured(min(done // 2, done - MIN_MEASURED)), self._n_records
        )

    def _fit(self, draws: np.ndarray) -> None:
        self.mean, self.factor = fit_draws(draws)

    def _freeze(self) -> None:
        """Take over what was learnt in the second half of tuning."""
        paths, evaluations = self._measured(self.tuning_steps // 2)
        if self.moves is None:
            best = best_number_of_moves(paths, evaluations, self._n_records)
            # Where nothing else moves the parameters, some moves must be made.
            self.n_moves = best if self._reading.records else best or MAX_MOVES
        if len(paths) > 2:
            self._fit(paths[:, -1])
        if self._reading.records:
            self._warn_if_alone(np.array(self.tuning_paths))
        self._forget_paths()

    def _measured(self, since: int) -> tuple[np.ndarray, np.ndarray]:
        """Paths, and how many evaluations their moves took, from an iteration of tuning on."""
        return np.array(self.tuning_paths[since:]), np.array(self.tuning_evaluations[since:])

    def _forget_paths(self) -> None:
        # Lists, so that a state holds no more than what was seen.
        self.tuning_paths: list[np.ndarray] = []
        self.tuning_evaluations: list[list[int]] = []

    def _warn_if_alone(self, paths: np.ndarray) -> None:
        unmoved = np.all(paths[:-1, -1] == paths[1:, 0], axis=0)
        if len(paths) < MIN_MEASURED or not unmoved.any():
            return
        start = 0
        alone = []
        for parameter in self._reading.parameters:
            stop = start + int(np.prod(parameter.type.shape))
            if unmoved[start:stop].any():
                alone.append(parameter)
            start = stop
        names = self._quoted(alone)
        warnings.warn(
            f"InterweaveStep is the only step that moves {names}. The draws are right, but at a "
            "large privacy budget the released values pin down what the step could move, and they "
            "come slowly. Pass another step beside it, such as pm.NUTS, or use pmd.assign_steps",
            UserWarning,
            stacklevel=2,
        )


def _is_doubling(done: int, first: int) -> bool:
    """Whether ``done`` is ``first`` times a power of 2."""
    times, rest = divmod(done, first)
    return rest == 0 and times > 0 and times & (times - 1) == 0
