"""A PyMC model run forward: independent draws from its prior, in compiled batches."""

from collections.abc import Sequence

import numpy as np
import pymc as pm
import pytensor
import pytensor.tensor as pt
from pymc.distributions.continuous import Flat, HalfFlat
from pytensor.graph import Variable, clone_replace
from pytensor.tensor.variable import TensorVariable

from pymc_dapper.backend.internals import collect_default_updates, default_transform
from pymc_dapper.checks import known
from pymc_dapper.context import model_to_read


class ForwardModel:
    """Draws of a model's free variables from their prior, with its factors evaluated there.

    The factors are the model's Potentials, which come first, and the log-densities of its observed
    variables. A batch is a compiled loop over the model's own graph, so each draw is computed by
    the same graph.

    Returns the named variables, by default all free and deterministic ones. Raises ValueError if
    the model has no factor or no free variable, if a name isn't of such a variable, or if the
    model's forward graph doesn't draw from its prior.
    """

    def __init__(self, model: pm.Model, var_names: Sequence[str] | None = None) -> None:
        model = model_to_read(model)
        _check_drawable(model)
        free = {x.name: x for x in (*model.free_RVs, *model.deterministics)}
        self.model = model
        self.var_names = list(free) if var_names is None else list(var_names)
        known(self.var_names, free, "var_names: the model has no free or deterministic variable")
        factors = _factors(model)
        self.factor_names = list(factors)
        if not factors:
            raise ValueError(
                "the model has no Potential and no observed variable: all draws from its prior "
                "would be accepted. Add the privacy mechanism."
            )
        self._compile([free[name] for name in self.var_names], list(factors.values()))

    def _compile(self, variables: list[TensorVariable], factors: list[TensorVariable]) -> None:
        outputs = [*variables, *(factor.sum() for factor in factors)]
        updates = collect_default_updates(outputs=outputs)
        # Separate generators: the model's aren't changed.
        self._generators = [pytensor.shared(np.random.default_rng()) for _ in updates]

        def one_draw(*generators: Variable) -> list[Variable]:
            replace = dict(zip(updates, generators, strict=True))
            return clone_replace([*outputs, *updates.values()], replace)

        size = pt.lscalar("size")
        batches = pytensor.scan(
            one_draw,
            outputs_info=[*(None for _ in outputs), *self._generators],
            n_steps=size,
            return_updates=False,
        )
        advanced = dict(zip(self._generators, batches[len(outputs) :], strict=True))
        with self.model:
            self._function = pm.compile([size], batches[: len(outputs)], updates=advanced)

    def seed(self, rng: np.random.Generator) -> None:
        """Take the randomness of all following draws from a generator."""
        for shared, child in zip(self._generators, rng.spawn(len(self._generators)), strict=True):
            shared.set_value(child, borrow=True)

    def draw(self, size: int) -> tuple[dict[str, np.ndarray], np.ndarray]:
        """Draw variables, shape (size, ...), and the logarithms of the factors, shape (size, F)."""
        outputs = self._function(size)
        n = len(self.var_names)
        draws = dict(zip(self.var_names, outputs[:n], strict=True))
        return draws, np.stack(outputs[n:], axis=1)

    def released(self, factor: str) -> np.ndarray | None:
        """Return a mechanism's released values, if the model has them under the factor's name."""
        variable = self.model.named_vars[factor]
        if variable in self.model.observed_RVs:
            data = self.model.rvs_to_values[variable]
        else:
            data = self.model.named_vars.get(f"{factor}_released")
        return None if data is None else np.asarray(data.eval(mode="FAST_COMPILE"))


def _factors(model: pm.Model) -> dict[str, TensorVariable]:
    for variable in (*model.potentials, *model.observed_RVs):
        # A mechanism knows which releases are possible; pm.set_data can have put in another one.
        check = getattr(variable.tag, "check_data", None)
        if check is not None:
            check()
    factors = {potential.name: potential for potential in model.potentials}
    for rv in model.observed_RVs:
        factors[rv.name] = pm.logp(rv, model.rvs_to_values[rv], warn_rvs=False)
    return factors


def _check_drawable(model: pm.Model) -> None:
    """Check that drawing the free variables forward is drawing from the prior."""
    if not model.free_RVs:
        raise ValueError("the model has no free variables to draw.")
    for rv in model.free_RVs:
        if isinstance(rv.owner.op, Flat.rv_type | HalfFlat.rv_type):
            raise ValueError(
                f"'{rv.name}' has an improper prior, which can't be drawn from. Give it a proper "
                "one."
            )
        transform = model.rvs_to_transforms[rv]
        if transform is None or type(transform) is type(default_transform(rv.owner.op, rv)):
            continue
        raise ValueError(
            f"'{rv.name}' has the transform {type(transform).__name__}, which may restrict its "
            "values, as an ordering does. Draws from the prior ignore transforms. Leave it "
            "out, and write a restriction as a factor of the model."
        )
