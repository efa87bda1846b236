"""Sampling without compiling: steps, and PyMC around them, are evaluated in Python.

For tests of what a sampler is asked, says and keeps. What is compiled is held against the same
graphs in Python elsewhere (`tests/against_python.py`).
"""

from contextlib import contextmanager
from functools import cache

import pytensor
import pytest
from pytensor.compile import mode
from pytensor.compile.mode import Mode

from pymc_dapper.backend.jit import JitFunction
from pymc_dapper.graphs.evaluation import compile_in_python
from pymc_dapper.steps import conditional_nuts

REWRITTEN = Mode(mode.FAST_COMPILE.linker, "fast_compile").including("py_only")
"""For a graph that is evaluated a hundred times, to rewrite it first saves time."""


def _make(self, inputs, outputs, model, compile_kwargs):
    @cache
    def function():  # not made before it is called: many tests only look at steps
        return compile_in_python(model, inputs, outputs)

    self.jitted = lambda *arguments: function()(*arguments)
    self._by_address = False


@contextmanager
def evaluated_in_python():
    """Compile nothing meanwhile."""
    with (
        pytest.MonkeyPatch.context() as patch,
        pytensor.config.change_flags(mode="FAST_COMPILE"),
    ):
        patch.setattr(JitFunction, "__init__", _make)
        patch.setattr(conditional_nuts, "numba_mode", lambda _: "FAST_COMPILE")
        yield
