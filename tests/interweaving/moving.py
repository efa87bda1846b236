"""Records at other parameters, with the same noise."""

import numpy as np
import pytensor
import pytensor.tensor as pt

from pymc_dapper.interweaving.reading.maps import parameters_of, record_map

N = 40


def move(dist, before, after, x, uniforms=None, **kwargs):
    """Records at other parameters with the same noise."""
    stand_ins = [pt.as_tensor(np.asarray(value)).type() for value in before]
    rv = dist(*stand_ins, **kwargs)
    node = rv.owner
    parameters = parameters_of(node)
    moved = [not np.array_equal(a, b) for a, b in zip(before, after, strict=True)]
    # A distribution may compute its operation's parameters from the user's.
    flags = [
        any(stand_in in pytensor.graph.traversal.ancestors([p]) for stand_in, m in pairs if m)
        for pairs in [list(zip(stand_ins, moved, strict=True))]
        for p in parameters
    ]
    rule = record_map(node.op, node, flags)
    at = {
        which: pytensor.graph.clone_replace(
            list(parameters),
            dict(zip(stand_ins, map(pt.as_tensor, map(np.asarray, values)), strict=True)),
        )
        for which, values in (("before", before), ("after", after))
    }
    noise = rule.noise(
        pt.as_tensor(x), at["before"], None if uniforms is None else pt.as_tensor(uniforms)
    )
    outputs = [rule.records(noise, at["after"]), rule.records(noise, at["before"])]
    return pytensor.function([], outputs, mode="FAST_COMPILE")()


def assert_steps_are_kept(dist, law, before, after):
    """Discrete records move to the step of the cdf that a random point in theirs lies in."""
    rng = np.random.default_rng(1)
    x, uniforms = law(*before).rvs(size=N, random_state=rng), rng.random(N)
    moved, back = move(dist, before, after, x, uniforms, size=N)
    np.testing.assert_array_equal(back, x)
    u = law(*before).cdf(x - 1) + uniforms * law(*before).pmf(x)
    assert np.all(law(*after).cdf(moved - 1) <= u + 1e-12)
    assert np.all(u < law(*after).cdf(moved) + 1e-12)
