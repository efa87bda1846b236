"""A graph as the source of one function of scalars and loops, which numba compiles at once.

PyTensor's backend compiles a function for each operation, and functions for what numba overloads in
it: 375 for example 3, each typed and optimised by itself, and again with each that calls it.
Written as one function, 50 are left, and a fifth of the time to the first draw.

- *What goes in* is a graph that PyTensor has rewritten for numba, without the rewrites that join
  operations or let them overwrite arrays (`linker`). `writer` writes the source, operation by
  operation; `operations`, `indexing` and `scalars` say how each is written.
- *An array* is a function from indices to a scalar expression (`values`). It is written out where
  it is used, or stored first if it is used several times and costs something. One of at most 16
  entries is as many named numbers. Each array remembers its entries by index, so the source is as
  long as the graph. Triangular systems of at most 8 rows are solved row by row, since PyTensor's
  functions for them take a second to compile.
- *Parts that are alike*, such as ten columns with priors of the same form, are found in the graph
  and written as one function, which is called for each (`repeated`). What is still long is written
  as several functions (`pieces`): numba's time grows faster than a function's length.
- *Other operations* (a Cholesky factor, a loop, a draw) are called as PyTensor's own functions.
  What these would overwrite is copied.
- *The key* of the machine code is of the source and of the keys of all functions that it calls.
  PyTensor has one key for an operation, whatever it is applied to, so the number of axes and the
  dtypes are added.
- *Relies on* PyTensor's numba linker, dispatch and cache on disk; of ours on
  ``accelerate.outermost`` alone, which import-linter checks. If a name of PyTensor's is gone, its
  own linker takes over.
"""
