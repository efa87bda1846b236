"""Many short chains of one model, without what `pm.sample` does around each; ranks among draws."""

import numpy as np
from scipy import stats


def chain(point, steps, rng, *, tune, draws, thin=1):
    """Yield points after tuning. Released values are those of the model's shared data."""
    for step in steps:
        step.setup_chain(rng.spawn(1)[0], tune=tune, draws=draws * thin)
    for k in range(tune + draws * thin):
        for step in steps:
            if k == tune:
                step.stop_tuning()
            point, _ = step.step(point)
        if k >= tune and (k - tune) % thin == 0:
            yield point


def p_value(ranks, kept):
    """Of ranks of truths among so many draws being even: by four bins of them, and by their mean.

    The smaller one of both, doubled.
    """
    ranks = np.asarray(ranks)
    bins = np.bincount(ranks // ((kept + 1) // 4), minlength=4)
    sd = np.sqrt(((kept + 1) ** 2 - 1) / 12 / len(ranks))
    of_mean = 2 * stats.norm.sf(abs(ranks.mean() - kept / 2) / sd)
    return 2 * min(stats.chisquare(bins).pvalue, of_mean)
