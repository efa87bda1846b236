"""Where variables of a function live, worked out once: before numba writes it.

After each of its passes over a function, numba works out anew which variables are alive at the
beginning of each block. It looks at that only when a function is written that runs in Python's own
way, or a generator; and works it out then, too.
"""

from numba.core.postproc import PostProcessor, VariableLifetime
from numba.core.transforms import canonicalize_cfg

PROCESS = PostProcessor.run
"""numba's own."""


def process(self: PostProcessor, emit_dels: bool = False, extend_lifetimes: bool = False) -> None:
    """Do what numba does after a pass, but for variables that are alive."""
    function = self.func_ir
    if emit_dels or function.is_generator:
        PROCESS(self, emit_dels, extend_lifetimes)
    else:
        function.blocks = canonicalize_cfg(function.blocks)
        function.variable_lifetime = VariableLifetime(function.blocks)  # what is asked for of it
        function.generator_info = None
