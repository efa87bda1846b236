"""Bayesian inference from privacy-protected data, in PyMC.

What is public, and where it is, `__init__.pyi` says. A name is imported when it is first used.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
__version__ = "0.1.0"
