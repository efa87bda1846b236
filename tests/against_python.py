"""Compiled functions held against the same graphs in Python, kernels and all."""

import copy

import numpy as np
import pytensor
from pytensor.compile.io import In
from pytensor.compile.mode import Mode


def assert_same_in_python(step, function, point, n_steps=40):
    """Check that what a step compiled does what its graph and its kernels do in Python.

    `function` is the `JitFunction` that the step calls. The graph is the compiled one: all that
    differs is who evaluates it.
    """
    graph = function._function.maker.fgraph.clone()
    in_python = pytensor.function(
        [In(x, mutable=True) for x in graph.inputs],
        graph.outputs,
        mode=Mode(linker="py", optimizer=None),
        accept_inplace=True,
        on_unused_input="ignore",
    )
    compiled, outputs = function.jitted, []

    def both(*arguments):
        expected = in_python(*copy.deepcopy(arguments))
        outputs.append(compiled(*arguments))
        for x, y in zip(outputs[-1], expected, strict=True):
            # Compiled, the last digits may be rounded in another way.
            np.testing.assert_allclose(x, y, rtol=1e-9, atol=1e-11)
        return outputs[-1]

    function.jitted = both
    try:
        step.setup_chain(np.random.default_rng(1), tune=n_steps // 2, draws=n_steps)
        for _ in range(n_steps):
            point, _ = step.step(point)
    finally:
        function.jitted = compiled
    assert len(outputs) >= n_steps
    # Not always the same.
    assert any(np.any(x != y) for x, y in zip(outputs[-1], outputs[-2], strict=True))
