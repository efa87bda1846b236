"""Names of PyMC's, PyTensor's and numba's that aren't promised to stay.

The rest of the package imports them from here, and the tests say why each is needed.
"""

from collections.abc import Sequence
from importlib.metadata import version
from typing import Any

import numpy as np
from pymc.distributions.transforms import Interval, Transform

try:
    from pymc.distributions.mixture import _HurdleRV as HurdleRV
    from pymc.distributions.multivariate import _LKJCholeskyCovRV as LKJCholeskyCovRV
    from pymc.distributions.transforms import _default_transform as default_transform
    from pymc.logprob.utils import CheckParameterValue
    from pymc.model.core import ValueGradFunction
    from pymc.pytensorf import collect_default_updates, constant_fold
    from pymc.stats.convergence import SamplerWarning, WarningType
    from pymc.step_methods.compound import StepMethodState
    from pymc.step_methods.state import DataClassState, dataclass_state, equal_dataclass_values
    from pymc.util import get_random_generator
    from pytensor.graph.fg import FrozenFunctionGraph
    from pytensor.tensor import _as_tensor_variable as as_tensor_by_type
except ImportError as error:
    raise ImportError(
        f"pymc_dapper needs a name that PyMC {version('pymc')} or PyTensor "
        f"{version('pytensor')} has changed: {error}. It is tested with PyMC 6.3.1 to 6.4.0 and "
        "PyTensor 3.3.6 to 3.3.8: install these"
    ) from error

type PointType = dict[str, np.ndarray]
"""A point of a model: values by the names of value variables."""
type StatsType = list[dict[str, Any]]
"""Type of a step's statistics of a draw."""
type _Seed = int | Sequence[int] | np.ndarray | np.random.Generator | None
type RandomGenerator = _Seed | np.random.BitGenerator
"""Types that steps accept as a generator."""
type RandomState = _Seed | np.random.RandomState
"""Types that PyMC's functions accept as a seed."""
