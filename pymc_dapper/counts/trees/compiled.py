"""The kernels of trees, compiled: machine code is kept on disk."""

from pymc_dapper.backend.jit import kept_on_disk
from pymc_dapper.counts.trees import downward, draws, messages, nodes, weights

in_post_order = kept_on_disk(nodes.in_post_order)
cut = kept_on_disk(nodes.cut)
limit = kept_on_disk(weights.limit)
ascend = kept_on_disk(messages.ascend)
bound_neglected = kept_on_disk(messages.bound_neglected)
descend = kept_on_disk(downward.descend)
summarise = kept_on_disk(downward.summarise)
draw_roots = kept_on_disk(draws.draw_roots)
split_draws = kept_on_disk(draws.split_draws)
