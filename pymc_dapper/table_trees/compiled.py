"""The kernels, compiled: machine code is kept on disk."""

from pymc_dapper.backend.jit import kept_on_disk
from pymc_dapper.table_trees import kernels

sweep = kept_on_disk(kernels.sweep)
settle = kept_on_disk(kernels.settle)
tally = kept_on_disk(kernels.tally)
