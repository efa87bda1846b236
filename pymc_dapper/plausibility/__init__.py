"""Plausibility checks: whether the releases in a model can have come from that model.

The checks draw data sets from the prior. They find two mistakes: a release that was made consistent
with a total that the model states elsewhere (`known_margins`), and a release that is in the model
twice (`repeated`).
"""
