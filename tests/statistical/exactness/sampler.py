"""A case's sampler: steps as they are chosen for it, driven without `pm.sample`.

Released values are swapped in as `pm.set_data` does it, so that one compiled sampler serves
thousands of data sets.
"""

import warnings
from dataclasses import dataclass, replace

import numpy as np
from pymc import NUTS, Model
from scipy.special import expit, logit

import pymc_dapper as pmd
from tests.moving_at_once import moving_at_once
from tests.statistical.exactness.cases import Case


def _to_simplex(value):
    log_p = np.concatenate([value, -value.sum(axis=-1, keepdims=True)], axis=-1)
    p = np.exp(log_p)
    return p / p.sum(axis=-1, keepdims=True)


def _from_simplex(p):
    log_p = np.log(p)
    return log_p[..., :-1] - log_p.mean(axis=-1, keepdims=True)


TRANSFORMS = {
    "NoneType": (lambda x: x, lambda x: x),
    "LogTransform": (np.log, np.exp),
    "LogOddsTransform": (logit, expit),
    "SimplexTransform": (_from_simplex, _to_simplex),
}
"""PyMC's transforms, written once more: to the chain's values and back."""


@dataclass(frozen=True)
class Sampler:
    """Steps for all variables of a case.

    Attributes
    ----------
    case : Case
        The case.
    model : Model
        Its model.
    steps : tuple of steps
        DapperStep first, then those of the parameters.
    """

    case: Case
    model: Model
    steps: tuple

    @property
    def dapper(self):
        return self.steps[0]

    def with_steps(self, steps):
        return replace(self, steps=tuple(steps))

    def to_values(self, drawn):
        """A point of the chain, from natural values of the free variables."""
        return {
            value: forward(np.asarray(drawn[name]))
            for name, value, (forward, _) in self._variables()
        }

    def to_natural(self, point):
        """Natural values of the free variables that a point has, by their names."""
        return {
            name: backward(np.asarray(point[value]))
            for name, value, (_, backward) in self._variables()
            if value in point
        }

    def _variables(self):
        for rv in self.model.free_RVs:
            transform = type(self.model.rvs_to_transforms[rv]).__name__
            yield rv.name, self.model.rvs_to_values[rv].name, TRANSFORMS[transform]

    def set_release(self, rng, released):
        """Swap released values in, and start a chain with a generator that is new."""
        for name, value in released.items():
            data = self.model[name]
            data.set_value(np.asarray(value, dtype=data.type.dtype))
        for step in self.steps:
            if isinstance(step, NUTS):  # which is given no factor that depends on data
                continue
            # What InterweaveStep has tuned, a new chain would forget.
            if step.rng is rng or isinstance(step, pmd.InterweaveStep):
                for given in step._givens:
                    given.data.read()
            else:
                step.setup_chain(rng, 0, 0)

    def advance(self, point):
        """One iteration: each step once."""
        for step in self.steps:
            point, _ = step.step(point)
        return point

    def tune(self, rng, iterations=400):
        """Let NUTS and InterweaveStep adapt to data as they come, and no more after that."""
        tuned = [step for step in self.steps if isinstance(step, NUTS | pmd.InterweaveStep)]
        for step in tuned:
            step.setup_chain(rng, iterations, 0)
            step.tune = True
        if tuned:
            for _ in self.successive(rng, iterations):
                pass
        for step in tuned:
            step.stop_tuning()
        return self

    def successive(self, rng, iterations):
        """Draw released values given everything, then everything given them, and again.

        Yields
        ------
        released : dict
            Released values.
        after_records, after_all : dict
            The point after the records' step, and after all steps. Either follows the joint law
            together with the released values, which were drawn before: a wrong conditional shows
            in what the three have in common.
        """
        point = self.to_values(self.case.prior(rng, ()))
        for _ in range(iterations):
            released = self.case.release(rng, self.to_natural(point))
            self.set_release(rng, released)
            after_records, _ = self.dapper.step(point)
            point = after_records
            for step in self.steps[1:]:
                point, _ = step.step(point)
            yield released, after_records, point

    def quantities(self, points):
        """What is looked at: parameters as the chain has them, means and single values of records.

        Parameters
        ----------
        points : dict
            Values of the chain's variables, stacked along the first axis.

        Returns
        -------
        dict of str to ndarray, shape (n,)
        """
        looked_at = {}
        for rv in self.model.free_RVs:
            value = self.model.rvs_to_values[rv].name
            x = np.asarray(points[value], dtype=float)
            x = x.reshape(len(x), -1)
            if rv.name in self.case.records:
                looked_at[f"mean of {rv.name}"] = x.mean(axis=1)
                looked_at[f"first {rv.name}"] = x[:, 0]
                looked_at[f"last {rv.name}"] = x[:, -1]
            else:
                looked_at |= {f"{rv.name} {k}": column for k, column in enumerate(x.T)}
        return looked_at


def stack(points):
    """A list of dicts of arrays, as one dict of longer ones."""
    return {name: np.stack([point[name] for point in points]) for name in points[0]}


def build(case, seed=1):
    """Compile a case's sampler, and tune it."""
    model = case.model()
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="DapperStep has to evaluate the model from all")
        records = [model[name] for name in case.records]
        steps = pmd.assign_steps(records, model, interweave=case.interweave)
    return Sampler(case, model, tuple(moving_at_once(steps))).tune(np.random.default_rng(seed))
