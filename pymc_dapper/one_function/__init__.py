"""A graph as the source of one function of scalars and loops, which numba compiles at once.

PyTensor's backend compiles a function for each operation, and functions for what numba overloads in
it: 375 for example 3. Each is typed and optimised alone, and again in each caller. Written as one
function, 50 are left, and the first draw takes a fifth of the time.

- *The input* is a graph that PyTensor has rewritten for numba, without rewrites that fuse
  operations or let them overwrite arrays (`linker`). `writer` writes the source, operation by
  operation; `operations`, `reductions`, `matrices`, `indexing` and `scalars` write each kind.
- *An array* is a function from indices to a scalar expression (`values`). It is written out where
  it is used, or stored first if it is used several times and isn't cheap. A vector with at most 4
  entries, or a table with as many rows and columns, is as many named numbers. Each array caches its
  entries by index, so the source is as long as the graph. Triangular systems with at most 8 rows
  are solved row by row, since PyTensor's functions for them take a second to compile.
- *Loops* of the same length become one, where no line passes another that it depends on (`fusion`).
- *Equal parts*, such as ten columns with priors of the same form, are found in the graph before
  all other rewrites. They are rewritten once, and written as one function, which is called for each
  (`repeated`).
- *Other operations* (a Cholesky factor, a loop, a draw) are called as PyTensor's own functions.
  Inputs that these would overwrite are copied.
- *The key* of the machine code depends on the source and on the keys of all called functions.
  PyTensor has one key for an operation, whatever its inputs, so the number of axes and the dtypes
  are added.
- *Relies on* PyTensor's numba linker, dispatch and cache on disk; of ours on
  ``accelerate.outermost`` alone, which import-linter checks. If a name of PyTensor's is gone, its
  own linker takes over.
"""
