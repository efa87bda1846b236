"""Code that depends on internals of PyTensor's numba backend and of PyMC; imports nothing of ours.

Names that may change are imported only here (`internals`), and ``tests/backend/test_internals.py``
says why each is needed.

**Operations with a kernel.** A kernel calls the model's compiled log-density. numba's own disk
cache identifies a kernel by its source, not by the function that it is given, and could serve code
of another model. So a sweep is a PyTensor operation with its own numba dispatch (`numba_ops`),
compiled together with the log-density. Its key (`kernel_key`) covers the graph, and the bytecode
and constants of each function that the kernel reaches. So nobody has to list what a new kernel
uses.

**Separate kernels.** A large kernel that doesn't depend on a model, such as the cdf of counts, is
kept on disk separately (`kept_on_disk`). Its key depends on its source and all that this refers to.

**Calls.** ``vm.jit_fn`` of a compiled function skips the overhead of PyTensor's call (`jit`). It
neither copies nor checks its arguments, so these must have the right dtype and layout. numba takes
a NumPy ``Generator`` as an argument and advances it in place.

**Named dimensions.** A model of `pymc.dims` is lowered once, as a whole, by PyTensor's own rewrites
(`lowered_dims`). Values keep their names and data stay shared; readers get plain tensors.

The linker of whole graphs, `pymc_dapper.one_function`, is used unless the user chose a mode.
`pmd.sample` has PyMC compile its functions by it, too.
"""
