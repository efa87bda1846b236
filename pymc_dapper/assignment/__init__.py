"""Which step takes which variable: the defaults a user wants.

- `steps` has :func:`assign_steps`: records, numbers of records, counts, parameters, in this order.
  It warns of what PyMC's own steps would move although it belongs to the records.
- `latent` finds the records and counts, `refusals` refuses releases that can't be sampled.
- `parameters` chooses among conjugate draws, NUTS, counts marginalised, and interweaving.
- `readings` has each reading of the model once, for whoever needs it.

Steps for counts are imported only if a model has counts: the import takes a twentieth of the time
before the first draw of a cached model.
"""
