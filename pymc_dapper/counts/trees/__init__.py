"""Trees of latent counts: messages up, exact draws and marginals down. No chain is needed.

Counts are sums of one another along a tree, and noise is independent. A message is the pmf of a
node on a window of counts, given all below it. Nodes are in post-order with two children at most,
and extra nodes sum many children two by two (`nodes`), so that a subtree is a slice.

- *Windows.* `messages.bound_neglected` bounds the share of the posterior that windows cut off.
  Windows are widened until the bound is below 1e-12. A part may have more counts than its sum's
  window leaves to it, if the sum's noise makes these improbable; the bound accounts for that.
- *Memory.* Subtrees are independent given the message of their root. `forest` keeps that message
  alone. On the way down, it computes the others of a subtree once more.
- *Convolutions* of two messages are written out, which keeps the digits of tails (`convolution`).
  On the way down, ends of marginals that are as small as rounding errors are left out.

The counts of a model use the same messages. `tables` evaluates the model's compiled terms on
windows, relative to a possible table, and tilts them by the Lagrange multipliers of the most likely
table, so that sums and parts have the same likely counts. `model` widens windows until the
neglected share is bounded, or, if parts have no upper end, until no sum beyond is likelier than all
within.
"""
