"""Trees of tables: people by area and cell, from noisy counts of any classes of cells at any area.

People are in cells of blocks. A release counts those of an area in each class of cells. Classes of
several queries cross, so that no message passes up the tree as in `counts.trees`: a chain moves
people, and residuals (released minus count) decide.

- `kernels`: the moves. A residual is touched only if its count changes. Priors cancel in most
  ratios: people are picked at random, and newcomers come from their group's composition.
- `given` checks what users give, and `start` has the first tables: block totals drawn by
  `CountTree`, cells by the composition that larger areas suggest.
- `chain` runs a chain, and keeps its state in a file. `tree` has the class, and `results` the draws
  with their summaries.
"""
