"""Steps as they are chosen, whose moves of parameters don't wait for tuning to need them."""

from pymc_dapper import InterweaveStep


def moving_at_once(steps):
    """The same steps: `InterweaveStep` moves from the first iteration on."""
    for step in steps:
        if isinstance(step, InterweaveStep):
            step.when_needed = False
    return steps
