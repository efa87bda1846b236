"""Tables of counts as latent variables: how a model sees them, and the step that updates cells.

`reading` walks through each factor (`graphs.terms.walk`) and splits it into terms of few cells, by
what is linear in the counts. What a factor requires exactly is a linear equation of the cells. A
cell that is thereby the sum of others, a latent total, is replaced by that sum everywhere
(`reading.totals`). `reading.moves` lists moves that keep what is known exactly and connect all
tables; `reading.blocks` finds cells that overlapping sums tie together; `reading.tree` says whether
all sums are nested or disjoint.

A sweep moves along lines of tables by slices on the integers (`kernels.line`), and in blocks also
along several directions at once (`kernels.joint`). Directions come from a reduced basis of the
lattice of tables, in the metric of the log-density's curvature and of the room that cells have.
Both are measured in tuning, then frozen. Random numbers are drawn beforehand (`kernels.draws`).

The step can integrate out parameters above the counts: `conjugacy.marginal` gives their marginal by
Bayes' rule. Counts on a tree are drawn anew, all at once, by messages (`trees`), if `trees.choice`
finds that this takes few enough operations. ``docs/latent-counts.md`` has the rest.
"""
