"""Names of PyMC's, PyTensor's and numba's that aren't promised to stay.

The rest of the package imports them from here, and the tests say of each what it is needed for.
"""

from pymc.blocking import PointType, StatsType
from pymc.distributions.mixture import _HurdleRV as HurdleRV
from pymc.distributions.multivariate import _LKJCholeskyCovRV as LKJCholeskyCovRV
from pymc.distributions.transforms import _default_transform as default_transform
from pymc.logprob.transforms import IntervalTransform, Transform
from pymc.logprob.utils import CheckParameterValue
from pymc.model.core import ValueGradFunction
from pymc.pytensorf import collect_default_updates, constant_fold
from pymc.stats.convergence import SamplerWarning, WarningType
from pymc.step_methods.compound import StepMethodState
from pymc.step_methods.state import dataclass_state, equal_dataclass_values
from pymc.util import RandomGenerator, RandomState, get_random_generator
from pytensor.graph.fg import FrozenFunctionGraph
from pytensor.link.vm import VMLinker
from pytensor.tensor import _as_tensor_variable as as_tensor_by_type

__all__ = [
    "CheckParameterValue",
    "FrozenFunctionGraph",
    "HurdleRV",
    "IntervalTransform",
    "LKJCholeskyCovRV",
    "PointType",
    "RandomGenerator",
    "RandomState",
    "SamplerWarning",
    "StatsType",
    "StepMethodState",
    "Transform",
    "VMLinker",
    "ValueGradFunction",
    "WarningType",
    "as_tensor_by_type",
    "collect_default_updates",
    "constant_fold",
    "dataclass_state",
    "default_transform",
    "equal_dataclass_values",
    "get_random_generator",
]
