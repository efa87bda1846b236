"""InterweaveSteps with one fault each: a test of exactness must fail for them."""

from dataclasses import replace

import numpy as np
import pytensor.tensor as pt

from pymc_dapper.graphs.rebuild import rebuild
from pymc_dapper.interweaving import step as interweave
from pymc_dapper.interweaving.reading.model import read_non_centred
from pymc_dapper.interweaving.step import InterweaveStep


class Unchecked(InterweaveStep):
    """A step that doesn't notice that its log-density isn't the model's."""

    def _check_compiled(self, kind, checked):
        pass


def with_fault(fault, monkeypatch):
    """A step that reads the model and then changes the reading by `fault(reading)`."""

    def read(*arguments):
        return fault(read_non_centred(*arguments))

    monkeypatch.setattr(interweave, "read_non_centred", read)
    monkeypatch.setattr(interweave, "check_noise", lambda reading, point: None)
    return Unchecked


def _minus(reading, term):
    return replace(reading, log_density=reading.log_density - term)


def without_jacobian_of_the_transform(name):
    """Forget the Jacobian of a parameter's own log transform."""

    def fault(reading):
        [log_value] = [x for x in reading.proposed if x.name == f"{name}_log___proposed"]
        return _minus(reading, log_value.sum())

    return fault


def with_jacobian_of_the_records(name):
    """Count the Jacobian of x -> x' for records of scale `name`, though it cancels."""

    def fault(reading):
        [log_scale] = [x for x in reading.proposed if x.name == f"{name}_log___proposed"]
        n = sum(int(np.prod(x.type.shape)) for x in reading.records)
        return _minus(reading, -n * log_scale.sum())

    return fault


def without_factor(name):
    """Leave one factor out."""

    def fault(reading):
        [factor] = reading.view.log_densities([reading.model[name]])
        new = dict(zip(reading.records, reading.moved_records, strict=True))
        new |= zip(reading.parameters, reading.proposed, strict=True)
        return _minus(reading, rebuild([factor], new)[0].sum())

    return fault


def with_stale_records(reading):
    """Evaluate the factors at the records as they were before the parameters moved."""
    stale = dict(zip(reading.moved_records, reading.records, strict=True))
    [log_density] = rebuild([reading.log_density], stale)
    return replace(reading, log_density=log_density)


def without_randomised_noise(reading):
    """Take the middle of a discrete record's step, always."""
    middle = {u: pt.full(u.type.shape, 0.5) for u in reading.uniforms}
    n = len(reading.noise)
    graphs = rebuild([*reading.noise, *reading.moved_records, reading.log_density], middle)
    return replace(
        reading,
        noise=tuple(graphs[:n]),
        moved_records=tuple(graphs[n:-1]),
        log_density=graphs[-1],
    )
