"""A model in which parameters, records and others depend on each other, and how models are read."""

import numpy as np
import pymc as pm
import pytensor
import pytensor.tensor as pt

from pymc_dapper.interweaving.reading.model import read_non_centred


def values_of(model, *names):
    return [model.rvs_to_values[model[name]] for name in names]


def read(model, parameters, records):
    return read_non_centred(
        model, values_of(model, *parameters), values_of(model, *records), model.initial_point()
    )


def linked_model():
    """Every way in which parameters, records and others can depend on each other."""
    with pm.Model() as model:
        theta = pm.Gamma("theta", 2, 2)
        upper = pm.Uniform("upper", 0, 2 + theta)
        slope = pm.Normal("slope", 0, 1)
        apart = pm.Normal("apart", slope, 1)
        u = pm.Uniform("u", -1, 1 + upper, shape=2)
        x = pm.Gamma("x", 2, theta, shape=2)
        y = pm.Normal("y", slope * x + u, 0.5 + theta, shape=2)
        child = pm.LogNormal("child", theta, 1)
        pm.Normal("outcome", y, 1, observed=[0.4, 1.2])
        pm.Poisson("public", theta, observed=[1, 2])
        z = pm.Normal("z", x.sum(), theta)
        pm.Laplace(
            "release",
            pt.stack([x.sum() + u.sum(), z * child, (x * y).sum()]),
            1.0,
            observed=[1, 2, 3],
        )
        pm.Potential("other", -(apart**2) * y[0])
    return model


LINKED = ("theta", "upper", "slope"), ("u", "x", "y")


def changes(model, reading, rng):
    """Return by how much a move changes the log-density: by the reading, and by the model.

    That of the model is of the whole joint density on the unconstrained scale, with the Jacobian of
    the records' map by numerical differentiation.
    """
    present = [*reading.parameters, *reading.records, *reading.given]
    f = pytensor.function(
        [*present, *reading.proposed],
        [*reading.moved_records, reading.log_density],
        mode="FAST_COMPILE",
        on_unused_input="ignore",
    )
    point = {name: rng.normal(size=np.shape(x)) for name, x in model.initial_point().items()}
    new = [rng.normal(size=x.type.shape) for x in reading.parameters]
    shapes = [x.type.shape for x in reading.records]
    ends = np.cumsum([np.prod(shape, dtype=int) for shape in shapes])[:-1]

    def as_records(flat):
        parts = zip(np.split(flat, ends), shapes, reading.records, strict=True)
        return {x.name: part.reshape(shape) for part, shape, x in parts}

    def follow(flat, to):
        at = {**point, **as_records(flat)}
        *moved, log_density = f(*(at[x.name] for x in present), *to)
        return np.concatenate([x.ravel() for x in moved]), float(log_density)

    records = np.concatenate([point[x.name].ravel() for x in reading.records])
    moved, log_density = follow(records, new)
    back, before = follow(records, [point[x.name] for x in reading.parameters])
    np.testing.assert_allclose(back, records, rtol=1e-10)
    h = 1e-5
    jacobian = np.column_stack(
        [
            (follow(records + h * e, new)[0] - follow(records - h * e, new)[0]) / (2 * h)
            for e in np.eye(len(records))
        ]
    )
    own = {x.name: value for x, value in zip(reading.parameters, new, strict=True)}
    logp = model.compile_logp(mode="FAST_COMPILE")
    after = logp({**point, **own, **as_records(moved)}) - logp(point)
    return log_density - before, after + np.linalg.slogdet(jacobian)[1]
