"""Compiled functions held against the same graphs in Python, kernels and all."""

import copy

import numpy as np
import pytensor
from pytensor.compile.io import In
from pytensor.compile.mode import Mode
from pytensor.graph.replace import graph_replace
from pytensor.tensor.random.type import random_generator_type

from pymc_dapper.backend.generators import GeneratorAt


def assert_same_in_python(step, function, point, n_steps=40):
    """Check that what a step compiled does what its graph and its kernels do in Python.

    `function` is the `JitFunction` that the step calls. The graph is the compiled one: all that
    differs is who evaluates it.
    """
    graph = function._function.maker.fgraph.clone()
    inputs, outputs = list(graph.inputs), list(graph.outputs)
    at = [node.outputs[0] for node in graph.toposort() if isinstance(node.op, GeneratorAt)]
    if at:  # the generator itself in the place of its address
        inputs[0] = random_generator_type()
        outputs = graph_replace(outputs, {at[0]: inputs[0]})
    in_python = pytensor.function(
        [In(x, mutable=True) for x in inputs],
        outputs,
        mode=Mode(linker="py", optimizer=None),
        accept_inplace=True,
        on_unused_input="ignore",
    )
    compiled, handed, made, rngs = function.jitted, function.handed, [], []

    def noting(rng):
        rngs.append(rng)
        return handed(rng)

    def both(*arguments):
        given = [rngs[-1], *arguments[1:]] if at else arguments
        expected = in_python(*copy.deepcopy(given))
        made.append(compiled(*arguments))
        for x, y in zip(made[-1], expected, strict=True):
            # Compiled, the last digits may be rounded in another way.
            np.testing.assert_allclose(x, y, rtol=1e-9, atol=1e-11)
        return made[-1]

    function.jitted, function.handed = both, noting
    try:
        step.setup_chain(np.random.default_rng(1), tune=n_steps // 2, draws=n_steps)
        for _ in range(n_steps):
            point, _ = step.step(point)
    finally:
        function.jitted, function.handed = compiled, handed
    assert len(made) >= n_steps
    # Not always the same.
    assert any(np.any(x != y) for x, y in zip(made[-1], made[-2], strict=True))
