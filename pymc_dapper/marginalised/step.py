"""MarginalisedStep: parameters moved by NUTS, counts marginalised and drawn exactly."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
from pymc import NUTS, Model
from pytensor.graph import Variable

from pymc_dapper.backend.internals import (
    PointType,
    RandomGenerator,
    StatsType,
    StepMethodState,
    dataclass_state,
)
from pymc_dapper.checks import options as options_of
from pymc_dapper.counts.compiled.data import CountData
from pymc_dapper.counts.reading.self_check import by_variable, in_cells
from pymc_dapper.graphs.errors import ReadingError
from pymc_dapper.graphs.evaluation import TOLERANCE, log_density_at
from pymc_dapper.marginalised.compiled.marginal_density import compile_sums
from pymc_dapper.marginalised.reading.model import read_marginalised
from pymc_dapper.plausibility.check import check_releases
from pymc_dapper.steps.base import Given, Step, check_compiled
from pymc_dapper.steps.building import tells_why
from pymc_dapper.steps.conditional_nuts import nuts_on
from pymc_dapper.steps.variables import check_given, count_values


@dataclass_state
class MarginalisedStepState(StepMethodState):
    """The state that a chain needs to continue exactly where it stopped."""

    nuts: StepMethodState


class MarginalisedStep(Step):
    """Move parameters by NUTS with the counts below them marginalised, and draw the counts.

    If noise is large, a chain that moves counts and parameters in turn mixes slowly. This step
    marginalises the counts: NUTS uses the log-density of the release given the parameters. The
    counts are then drawn from their conditional distribution. Together this moves both at once.

    Binomial and Poisson counts with separate noise are marginalised one by one, such as noisy
    counts of areas with area effects. For other counts, use :class:`CountStep`.

    Parameters
    ----------
    vars : variable or sequence of variables
        The parameters: continuous free random variables (or their value variables).
    counts : variable or sequence of variables
        The counts. No other step may move them.
    model : Model, optional
        The model. Taken from the context if not given.
    rng : int, Generator, ..., optional
        Seed of the step. ``pm.sample`` passes each chain its own generator.
    blocked : bool, default True
        Must be True: the parameters are moved together.
    compile_kwargs : dict, optional
        Passed on to PyMC's ``compile``. The mode must be one of numba's.
    initial_point : dict, optional
        Values of the model's value variables, to check the reading of the model at. Those not
        given are taken from the model's own initial point.
    nuts : dict, optional
        Passed on to ``pm.NUTS``, such as ``{"target_accept": 0.99}``, which is 0.95 by default.

    Raises
    ------
    ReadingError
        If the counts can't be marginalised, with the reason.

    Attributes
    ----------
    nuts : NUTS
        PyMC's step for the parameters.

    Notes
    -----
    A count's weights under its prior and the noise are tabulated once, at the start of a chain,
    around the released value. A sum takes a multiplication and an addition for each count that
    isn't negligible. Their number depends on the narrower of noise and prior, not on the number of
    people. A sum leaves out less than 1e-12 of its value. This needs noise with a concave
    log-density, such as Gaussian or Laplace noise, discrete or not, clamped or rounded. If a sum
    would need more than 130,000 counts on a side, the noise's density is below exp(-700) of its
    maximum. The sum is then taken as 0, and NUTS reports a divergence.

    The sampler statistics are those of PyMC's NUTS. Shared data (``pm.Data``) are read again when a
    chain starts.

    References
    ----------
    Liu, J. S. (1994). The collapsed Gibbs sampler in Bayesian computations with applications to a
    gene regulation problem. Journal of the American Statistical Association 89(427).

    van Dyk, D. A., and Park, T. (2008). Partially collapsed Gibbs samplers. Journal of the American
    Statistical Association 103(482). Why the counts are drawn right after the parameters.

    Examples
    --------
    >>> with pm.Model() as model:
    ...     mu, tau = pm.Normal("mu", 0, 2), pm.HalfNormal("tau", 1)
    ...     effect = pm.Normal("effect", mu, tau, shape=len(people))
    ...     ill = pm.Binomial("ill", n=people, p=pm.math.sigmoid(effect))
    ...     pmd.DiscreteGaussianMechanism(sigma=10).potential("privacy", ill, released=released)
    ...     idata = pm.sample(step=[MarginalisedStep([mu, tau, effect], counts=[ill])])
    """

    name = "marginalised"
    stats_dtypes_shapes = NUTS.stats_dtypes_shapes
    _progressbar_config = staticmethod(NUTS._progressbar_config)
    _make_progressbar_update_functions = staticmethod(NUTS._make_progressbar_update_functions)
    _state_class = MarginalisedStepState

    @tells_why
    def __init__(
        self,
        vars: Variable | Sequence[Variable],
        *,
        counts: Variable | Sequence[Variable],
        model: Model | None = None,
        rng: RandomGenerator = None,
        blocked: bool = True,
        compile_kwargs: dict[str, Any] | None = None,
        initial_point: PointType | None = None,
        nuts: Mapping[str, Any] | None = None,
    ):
        nuts = options_of(nuts, "nuts")
        model, options, point = self._init(vars, model, rng, blocked, compile_kwargs, initial_point)
        if not blocked:
            raise ValueError("blocked=False: the parameters are moved together, with the counts")
        check_given(counts, "MarginalisedStep was given as counts", "the marginalised counts")
        parameters, summed = self._moved, count_values(counts, model)
        for value in parameters:
            if value.dtype not in ("float32", "float64"):
                name = model.values_to_rvs[value].name
                raise ReadingError(
                    f"'{name}' isn't continuous, and NUTS can't move it: leave it to another step"
                )
        reading = self._reading or read_marginalised(model, parameters, summed)
        self._reading = reading
        self._will_move([*summed, *parameters])
        self._data = CountData(reading, reading.noise, "MarginalisedStep")
        self._given = Given(reading.parameters, self._data)
        self._givens = [self._given]
        self._check_releases = partial(check_releases, model, summed, "the counts")
        self._check_releases()
        self._when_read(partial(self._compile, options, point, nuts))

    def _compile(self, options: dict[str, Any], point: PointType, nuts: Mapping[str, Any]) -> None:
        """Compile the sums, tabulate the weights, and build NUTS."""
        self._stage("Compiling")
        reading, nuts = self._reading, {"compile_kwargs": options, **nuts}
        self._sums = compile_sums(reading, options)
        self._sums.tabulate(self._counts(point), self._given(point))
        self.nuts = nuts_on(self._sums.log_density, reading.moved, reading.model, point, **nuts)
        self._check_compiled(point)

    def _check_compiled(self, point: PointType) -> None:
        """Compare with the model's own log-density, by Bayes' rule, at counts drawn at random.

        p(counts, released) = p(released) p(counts given released), given the parameters.
        """
        reading, rng = self._reading, np.random.default_rng(0)
        written = log_density_at(reading.model, [reading.written])
        marginalised = self._log_density(point)
        if marginalised == -np.inf:
            names = ", ".join(f"'{rv.name}'" for rv in reading.rvs)
            raise ReadingError(
                f"the counts {names} can't be marginalised where the chain starts: the parameters "
                "there are impossible, or predict counts too far from the release. Start them "
                "elsewhere, by initval=, or let CountStep move the counts (marginalise=False)"
            )
        for _ in range(2):
            drawn, log_probability = self._sums.draw(rng, self._given(point))
            expected = written(self._with_counts(point, drawn))
            if np.isfinite(expected):
                what = "the log-density with the counts marginalised, times their conditional, is"
                got = marginalised + log_probability
                check_compiled(what, got, expected, TOLERANCE["float64"])

    def describe(self) -> str:
        """Describe how the model was read.

        Returns
        -------
        str
            The parameters that NUTS moves, the counts that are marginalised, and their factors.
        """
        reading = self._reading
        moved = ", ".join(f"'{reading.model.values_to_rvs[x].name}'" for x in reading.moved)
        counts = ", ".join(f"'{rv.name}'" for rv in reading.rvs)
        factors = ", ".join(f"'{name}'" for name in reading.factors)
        return (
            f"NUTS moves {moved}, with the counts {counts} marginalised one by one.\n"
            "The counts are then drawn from their conditional distribution.\n"
            f"Factors of the counts: {factors}"
        )

    def __repr__(self) -> str:
        """Summarise how the model was read."""
        reading = self._reading
        moved = ", ".join(reading.model.values_to_rvs[x].name for x in reading.moved)
        counts = ", ".join(rv.name for rv in reading.rvs)
        return f"<MarginalisedStep: {moved}; {counts} marginalised>"

    def _start_chain(self, tune: int, draws: int) -> None:
        self._tabulated = False
        self.nuts.reset_tuning()
        self.nuts.setup_chain(self.rng.spawn(1)[0], tune, draws)

    def stop_tuning(self) -> None:
        """End tuning."""
        self.nuts.stop_tuning()

    def step(self, point: PointType) -> tuple[PointType, StatsType]:
        """Move the parameters, and draw the counts given them."""
        if not self._tabulated:
            self._sums.tabulate(self._counts(point), self._given(point))
            self._tabulated = True
        moved, stats = self.nuts.step(point)
        counts, _ = self._sums.draw(self.rng, self._given(moved))
        return self._with_counts(moved, counts), stats

    def _log_density(self, point: PointType) -> float:
        values = [np.ravel(point[x.name]) for x in self._reading.moved]
        log_density, _ = self.nuts._logp_dlogp_func([np.concatenate(values)], extra_vars=point)
        return float(log_density)

    def _counts(self, point: PointType) -> np.ndarray:
        return in_cells([point[x.name] for x in self._reading.counts])

    def _with_counts(self, point: PointType, counts: np.ndarray) -> PointType:
        names = [x.name for x in self._reading.counts]
        new = by_variable(self._reading.noise, counts)
        return {**point, **dict(zip(names, new, strict=True))}
