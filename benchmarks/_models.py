"""Models of the examples, for benchmarks: their own code, loaded from examples/."""

import importlib.util
import sys
from pathlib import Path

import numpy as np

EXAMPLES = Path(__file__).parents[1] / "examples"


def example(name):
    """Import a script of examples/ as a module."""
    if str(EXAMPLES) not in sys.path:
        sys.path.insert(0, str(EXAMPLES))  # a script finds its neighbours there
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def randomised_response():
    """Example 1 of the dapper paper: the model, and which cell each answer points to."""
    module = example("randomised_response")
    male = np.array(module.DATA["answered_male"])
    admitted = np.array(module.DATA["answered_admitted"])
    model = module.build_model(male, admitted, module.DATA["keep_probability"])
    return model, 2 * (1 - male) + (1 - admitted), module.DATA["keep_probability"]


def admissions():
    """Example 2 of the dapper paper: the model, the released counts, and sigma."""
    module = example("admissions")
    released, sigma, n = (module.DATA[key] for key in ("released", "sigma", "n"))
    return module.build_model(released, sigma, n), np.array(released, dtype=float), sigma
