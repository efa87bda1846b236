"""Kernels broken on purpose: a test of exactness must fail for each of them.

A fault is a line that is written in another way, wherever the package's kernels have it. What is
compiled, or evaluated, in the meantime is what users run, but for that line.
"""

import inspect
import re
import sys
import textwrap
from contextlib import contextmanager
from functools import partial

import pytest
from numba.core.dispatcher import Dispatcher

from pymc_dapper.records.compiled import sweep
from pymc_dapper.records.step import DapperStep

# Forget to update the cached sums when a proposal is accepted.
STALE_SUMS = {
    "change[j] += added[k, j] - removed[k, j]": "pass",
    "log_now = log_new": "pass",
    "total[cell] += 2 * side - 1": "pass",
    "terms[cell] = proposed_terms[t, side]": "pass",
    "change[j] = proposed_change[j]": "pass",
    "terms[j] = proposed_terms[j]": "pass",
    "present = proposed": "state[i] = records[i]",
}

# Entry by entry: forget to update the cached terms when a proposal is accepted.
STALE_TERMS = {
    "terms[j] = proposed_terms[j]": "pass",
    "terms[cell] = proposed_terms[t, side]": "pass",
}

# Decide by something else than the ratio of the log-densities.
GAINS = (
    "log_gain(log_now, log_new)",
    "log_gain(present, proposed)",
    "decisive_gain(gain, n_impossible)",
)


def _decide_by(gain):
    return {f"accepted[i] = thresholds[i] < {x}": gain.format(x) for x in GAINS}


# Accept with the ratio upside down.
UPSIDE_DOWN = _decide_by("accepted[i] = thresholds[i] < -{}")
# Ignore the mechanism.
ACCEPT_ALL = _decide_by("accepted[i] = True")
# Accept by half of the log ratio, as if the noise had twice the variance.
FLATTENED = _decide_by("accepted[i] = thresholds[i] < 0.5 * {}")

# Entry by entry: forget that a proposal changes the others than the first.
FIRST_CHANGE_ONLY = {
    "own = added[k, j] - removed[k, j]": "own = added[k, j] - removed[k, j] if j == 0 else 0.0",
    "gain += proposed_terms[t, side] - terms[cell]": (
        "gain += proposed_terms[t, side] - terms[cell] if cell == 0 else 0.0"
    ),
}

# Entry by entry: heed the first only.
FIRST_ENTRY_ONLY = FIRST_CHANGE_ONLY | {
    "terms[j] = log_term(total[j], context[j])": (
        "terms[j] = log_term(total[j], context[j]) if j == 0 else 0.0"
    ),
}

# By cell: overlook the last of the variables that a table sees.
ONE_COLUMN_FORGOTTEN = {
    "for k in range(tables.columns[t, 0]):": "for k in range(tables.columns[t, 0] - 1):",
}

# By cell: look up the cell of another value when records are counted.
ONE_VALUE_LATER = {
    "counts[np.uint64(own)] += 1": ("counts[np.uint64((own + 1) % n_cells)] += 1"),
}

# Forget all factors but the separable ones.
SEPARABLE_ONLY = {
    "accepted[i] = thresholds[i] < decisive_gain(gain, n_impossible)": (
        "accepted[i] = thresholds[i] < 0.0"
    ),
}

# Each block goes on from the sums before the sweep.
FORGETFUL_BLOCKS = {"sums,": "(sums.total.copy(), sums.change.copy(), sums.lost.copy()),"}
# A proposal contributes what the present record does.
UNCHANGED_BLOCKS = {"proposed_rows(arrays, start, stop),": "present_rows(arrays, start, stop),"}


@contextmanager
def in_place(fault):
    """Put a fault into all kernels that have its lines.

    Raises
    ------
    AssertionError
        If a line is in no kernel: the fault would go untested.
    """
    with pytest.MonkeyPatch.context() as patch:
        unused = set(fault)
        for kernel in _kernels():
            source = inspect.getsource(kernel.py_func)
            here = {line for line in fault if _whole_line(line).search(source)}
            if here:
                unused -= here
                for line in here:
                    source = _whole_line(line).sub(lambda m, new=fault[line]: m[1] + new, source)
                _replace(patch, kernel, _function(kernel, source))
        assert not unused, f"no kernel has the lines {unused}"
        yield


@contextmanager
def edited(owner, name, fault):
    """Put a fault into a function of a module, or a method of a class, as `in_place` does."""
    function = inspect.unwrap(getattr(owner, name))
    function = getattr(function, "py_func", function)
    source = textwrap.dedent(inspect.getsource(function))
    for line, new in fault.items():
        source, found = _whole_line(line).subn(lambda m, new=new: m[1] + new, source)
        assert found, f"'{name}' hasn't the line {line}"
    made = {}
    exec(compile(source, "<broken function>", "exec"), function.__globals__, made)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(owner, name, made[name])
        yield


def without_separable():
    """Forget the separable factors."""
    line = "thresholds = lowered(log_uniforms, log_removed, log_added)"
    return edited(sweep, "_decide", {line: "pass"})


def _kernels():
    """All functions of the package's kernels for records."""
    modules = {m for name, m in sys.modules.items() if "pymc_dapper.records.kernels." in name}
    return [
        x
        for module in modules
        for x in vars(module).values()
        if isinstance(x, Dispatcher) and x.__module__ == module.__name__
    ]


def _whole_line(line):
    return re.compile(rf"^( *){re.escape(line)}$", re.MULTILINE)


def _function(kernel, source):
    """Make a function of a kernel's edited source, that sees what the kernel sees."""
    made = {}
    exec(compile(source, "<broken kernel>", "exec"), kernel.py_func.__globals__, made)
    return made[kernel.__name__]


def _replace(patch, kernel, new):
    for module in [m for name, m in sys.modules.items() if name.startswith("pymc_dapper.")]:
        for name, value in list(vars(module).items()):
            if value is kernel:
                patch.setattr(module, name, new)


def broken_step(fault):
    """A DapperStep whose kernels have a fault; or with what a function puts in place."""
    put_in_place = fault if callable(fault) else partial(in_place, fault)

    class BrokenDapperStep(DapperStep):
        def __init__(self, *args, **kwargs):
            with put_in_place():
                super().__init__(*args, **kwargs)
            self.sweep.function.jitted.disable_compile()  # for other arrays: without the fault

        def _check_compiled(self, *_):
            """Nor may the step itself notice: it is for the test to tell."""

        _check_digits = _check_compiled

    return BrokenDapperStep
