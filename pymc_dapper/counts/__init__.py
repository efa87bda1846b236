"""Tables of counts as latent variables: how a model depends on them, and their step.

`reading` walks through each factor (`graphs.terms.walk`) and splits it into terms of few cells, by
linear functions of the counts. An exact condition is a linear equation of the cells. If an equation
makes a cell the sum of others, the cell is a latent total, and is replaced by that sum everywhere
(`reading.totals`). `reading.moves` lists moves that keep the equations and connect all tables;
`reading.blocks` finds cells that are tied by overlapping sums; `reading.tree` checks whether all
sums are nested or disjoint. Tables that agree on margins have moves of their own
(`reading.linked`).

A sweep moves along lines of tables by slice sampling on the integers (`kernels.line`), and in
blocks also along several directions at once (`kernels.joint`). Directions are a reduced basis of
the lattice of tables, in the metric of the log-density's curvature and of the cells' counts. Both
are measured in tuning, then fixed. Random numbers are drawn beforehand (`kernels.draws`).

The step can marginalise parameters of the counts: `conjugacy.marginal` gives their marginal by
Bayes' rule. Counts on a tree are drawn jointly by messages (`trees`), if `trees.choice` finds that
this takes fewer operations than moves. ``docs/latent-counts.md`` has the rest.
"""
