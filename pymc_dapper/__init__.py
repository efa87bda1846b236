"""Bayesian inference from privacy-protected data, in PyMC.

`__init__.pyi` lists the public names and their modules. A name is imported when it is first used.
"""

from typing import Any

import lazy_loader

from pymc_dapper.garbage import searching_new_garbage_only

_imported, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    with searching_new_garbage_only():
        return _imported(name)
