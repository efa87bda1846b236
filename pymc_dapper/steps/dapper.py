"""DapperStep: record-wise Metropolis updates of latent confidential records."""

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
from pymc.blocking import PointType, StatsType
from pymc.exceptions import SamplingError
from pymc.model import Model, modelcontext
from pymc.step_methods.compound import BlockedStep, StepMethodState
from pymc.step_methods.state import dataclass_state
from pymc.util import RandomGenerator, get_random_generator
from pytensor.graph.basic import Variable
from rich.progress import TextColumn
from rich.table import Column

from pymc_dapper.compiled.data import SharedData
from pymc_dapper.compiled.sweep import compile_sweep
from pymc_dapper.compiled.sweep_op import RecordSweep
from pymc_dapper.reading.model import read_model
from pymc_dapper.reading.self_check import check_reading
from pymc_dapper.steps.variables import record_values


@dataclass_state
class DapperStepState(StepMethodState):
    """What a chain needs to go on exactly where it stopped."""

    started: bool


class DapperStep(BlockedStep):
    """Update latent confidential records one by one, given parameters and released values.

    In every sweep each record is proposed anew from its prior given the parameters, and accepted
    or rejected by what that changes in all other factors of the model's log-density: the privacy
    mechanism, above all. The step finds these factors in the model by itself. Where they see the
    records through sums over them, the sums are cached and an update costs as much as evaluating
    the mechanism once, however many records there are.

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
        Whether several variables are updated together, record by record. Otherwise each gets a step
        of its own.
    compile_kwargs : dict, optional
        Passed on to PyMC's ``compile``. The mode must be one of numba's.
    initial_point : dict, optional
        Values of the model's value variables, to check the reading of the model at. The model's own
        initial point if not given.
    max_start_sweeps : int, default 1000
        A chain may start where the mechanism gives the released value zero density. Its first step
        then repeats sweeps, each of which takes the prior's proposals until the density is
        positive, at most this many times.

    Raises
    ------
    ReadingError
        If a variable isn't a record, if nothing in the model depends on the records, or if the
        model's log-density sees them in a way that the step doesn't understand.

    Attributes
    ----------
    sweep : CompiledSweep
        The compiled sweep.

    Notes
    -----
    The sampler statistics are ``dapper_accept``, the share of the records whose proposal was
    accepted in the sweep, and ``dapper_mechanism_logp``, the log-density after the sweep of all
    factors that the records enter except their prior. An acceptance near 1 is no sign of good
    mixing: at a small privacy budget every proposal is accepted while parameters and records
    follow each other slowly.

    Shared data (``pm.Data``) are read again when a chain starts, so that a step can be used after
    ``pm.set_data`` without being built anew.

    References
    ----------
    Ju, N., Awan, J. A., Gong, R., and Rao, V. A. (2022). Data augmentation MCMC for Bayesian
    inference from privatized data. Advances in Neural Information Processing Systems 35.
    Algorithm 1.

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
    stats_dtypes_shapes: ClassVar[dict[str, tuple[type, list[int]]]] = {
        "dapper_accept": (np.float64, []),
        "dapper_mechanism_logp": (np.float64, []),
    }
    _state_class = DapperStepState
    _sweep_op = RecordSweep

    def __init__(
        self,
        vars: Variable | Sequence[Variable],
        *,
        model: Model | None = None,
        rng: RandomGenerator = None,
        blocked: bool = True,
        compile_kwargs: dict[str, Any] | None = None,
        initial_point: PointType | None = None,
        max_start_sweeps: int = 1000,
    ):
        model = modelcontext(model)
        if max_start_sweeps < 1:
            raise ValueError(f"max_start_sweeps must be at least 1, got {max_start_sweeps}")
        self.vars = record_values(vars, model)
        self.blocked = blocked
        self.rng = get_random_generator(rng)
        self.max_start_sweeps = max_start_sweeps

        point = model.initial_point() if initial_point is None else initial_point
        reading = read_model(model, self.vars, point)
        check_reading(reading, point)
        self.sweep = compile_sweep(reading, compile_kwargs=compile_kwargs, sweep_op=self._sweep_op)
        self._reading = reading
        self._data = SharedData(reading)
        self._record_names = [x.name for x in reading.records]
        self._parameter_names = [x.name for x in reading.parameters]
        self.started = False
        # PyTensor compiles at the first call. Here, forked workers inherit the result.
        self._update(self._records(point), self._given(point), np.random.default_rng(0))

    def setup_chain(self, rng: RandomGenerator, tune: int, draws: int) -> None:
        """Start a chain: take its generator, read shared data anew.

        Raises
        ------
        ValueError
            If shared data, or the number of records, changed in shape since the step was built.
        """
        super().setup_chain(rng, tune, draws)
        self._data.read()
        self.started = False

    def step(self, point: PointType) -> tuple[PointType, StatsType]:
        """Update all records once; the first step of a chain, until the state is a possible one."""
        given = self._given(point)
        records, accepted, logp = self._update(self._records(point), given, self.rng)
        if not self.started:
            sweeps = 1
            while not np.isfinite(logp):
                if sweeps == self.max_start_sweeps:
                    raise SamplingError(self._impossible_start())
                records, accepted, logp = self._update(records, given, self.rng)
                sweeps += 1
            self.started = True

        stats = {
            "dapper_accept": np.count_nonzero(accepted) / len(accepted),
            "dapper_mechanism_logp": float(logp),
        }
        return {**point, **dict(zip(self._record_names, records, strict=True))}, [stats]

    def _records(self, point: PointType) -> list[np.ndarray]:
        return [np.asarray(point[name], order="C") for name in self._record_names]

    def _given(self, point: PointType) -> list[np.ndarray]:
        parameters = [np.asarray(point[name], order="C") for name in self._parameter_names]
        return parameters + self._data.values

    def _update(
        self, records: list[np.ndarray], given: list[np.ndarray], rng: np.random.Generator
    ) -> tuple[list[np.ndarray], np.ndarray, np.ndarray]:
        """One sweep: propose all records, then decide on them one after the other."""
        proposals = self.sweep.propose(rng, *given)
        log_uniforms = -rng.standard_exponential(len(records[0]))
        *records, accepted, logp = self.sweep.decide(*records, *proposals, log_uniforms, *given)
        return records, accepted, logp

    def _impossible_start(self) -> str:
        records = ", ".join(f"'{name}'" for name in self._record_names)
        factors = ", ".join(f"'{factor.name}'" for factor in self._reading.factors)
        example = self._reading.model.values_to_rvs[self.vars[0]].name
        return (
            f"DapperStep found no possible start for the records {records}: after "
            f"{self.max_start_sweeps} sweeps the log-density of {factors} is still -inf or nan. "
            "Either the released values can't come from any records (look for a wrong shape, scale "
            "or nan in the mechanism), or the prior at the starting parameters hardly ever "
            "proposes such records: then pass a start that fits, "
            f"pm.sample(initvals={{'{example}': ...}}), or raise max_start_sweeps"
        )

    @staticmethod
    def _progressbar_config(n_chains: int = 1) -> tuple[list[TextColumn], dict[str, list[float]]]:
        columns = [
            TextColumn(
                "{task.fields[dapper_accept]:0.2f}",
                table_column=Column("Records accepted", ratio=1),
            )
        ]
        return columns, {"dapper_accept": [0.0] * n_chains}

    @staticmethod
    def _make_progressbar_update_functions() -> tuple[Any, ...]:
        def update_stats(step_stats: dict[str, Any]) -> dict[str, Any]:
            return {"dapper_accept": step_stats["dapper_accept"]}

        return (update_stats,)
