"""What steps of ours take beside NUTS: one by one, as one call of the compiled loop, and at least.

    python -m benchmarks.beside_nuts

Microseconds of CPU an iteration, after 500 of tuning, the least of some times. "Together" is the
loop of `GibbsStep` for one iteration of the steps that stand in a row; "at least" is the same loop
for 2,000, without what is handed to and from Python in each.
"""

import warnings
from functools import partial
from itertools import groupby
from time import process_time

import numpy as np

import pymc_dapper as pmd
from benchmarks import first_draws
from pymc_dapper.backend.iterations import Iterations
from pymc_dapper.steps.base import Step

MODELS = ("group_means", "ordered_logit", "logistic_regression", "latent_classes")
TUNE, TIMES, ITERATIONS = 500, 7, 300


def microseconds(work, calls):
    """The least of some times, for a call."""
    best = np.inf
    for _ in range(TIMES):
        began = process_time()
        for _ in range(calls):
            work()
        best = min(best, process_time() - began)
    return 1e6 * best / calls


class Chain:
    """Steps in turn, after tuning."""

    def __init__(self, name):
        model = first_draws.build(name)
        with model:
            self.steps = pmd.assign_steps()
        self.point = model.initial_point()
        rngs = np.random.default_rng(1).spawn(len(self.steps))
        for step, rng in zip(self.steps, rngs, strict=True):
            step.setup_chain(rng, TUNE, 10_000)
        for _ in range(TUNE):
            self.iterate(self.steps)
        for step in self.steps:
            step.stop_tuning()
        self.iterate(self.steps)

    def iterate(self, steps):
        for step in steps:
            self.point, _ = step.step(self.point)

    def together(self, steps):
        """The loop of steps of ours in a row, as a function of the number of iterations."""
        pairs = [(each, step.rng) for step in steps for each in step.transitions]
        transitions, rngs = zip(*pairs, strict=True)
        used = [x for each in transitions for x in (*each.takes, *each.moves) if isinstance(x, str)]
        point = {name: np.array(x) for name, x in self.point.items() if name in used}
        loop = Iterations(transitions, point)
        return lambda n: loop(n, transitions, rngs, point)

    def runs(self):
        """Steps of ours in a row that are compiled code now."""
        ours = groupby(self.steps, lambda x: isinstance(x, Step) and len(x.transitions) > 0)
        return [list(steps) for is_ours, steps in ours if is_ours]


def main():
    warnings.simplefilter("ignore")
    print("| model | NUTS | ours, one by one | together | at least |")
    print("| --- | --- | --- | --- | --- |")
    for name in MODELS:
        chain = Chain(name)
        runs = chain.runs()
        loops = [chain.together(run) for run in runs]
        in_runs = [step for run in runs for step in run]
        others = [step for step in chain.steps if step not in in_runs]
        found = (
            microseconds(partial(chain.iterate, others), ITERATIONS),
            microseconds(partial(chain.iterate, in_runs), ITERATIONS),
            sum(microseconds(partial(loop, 1), ITERATIONS) for loop in loops),
            sum(microseconds(partial(loop, 2_000), 1) / 2_000 for loop in loops),
        )
        print(f"| {name} | {' | '.join(f'{x:.0f}' for x in found)} |")


if __name__ == "__main__":
    main()
