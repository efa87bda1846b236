"""MarginalisedStep: parameters moved by NUTS with counts marginalised, and counts drawn exactly.

The counts' walk goes over all factors except the counts' prior: each term must depend on one count,
and on no parameter. The log-density of a Binomial or Poisson count is linear in a natural parameter
(`reading.model`). So weights of counts are tabulated once per chain (`kernels.count_tables`), and
an operation sums them (`compiled.op`); its gradient is the mean count. The rest of the log-density
is the model's own, at fixed counts. No PyMC density is written a second time.

The self-check is Bayes' rule: the marginalised log-density, plus the log-probability of the counts
that are drawn, is the model's log-density.
"""
