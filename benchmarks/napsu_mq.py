"""NAPSU-MQ's posterior by twinify 2.0.0, which needs a Python before 3.12 and old neighbours.

    python3.10 -m venv twin
    twin/bin/pip install twinify==2.0.0 numpyro==0.10.1 jax==0.4.13 jaxlib==0.4.13 'scipy<1.11'

The functions are those that its `NapsuMQModel.fit` calls, with the sizes of its example; here the
tables are released beforehand, so that others can analyse the same.
"""

import sys
from itertools import product
from pathlib import Path
from time import process_time

import numpy as np

from benchmarks.private_pgm import elsewhere, handed_over

CHAINS, TUNE, DRAWS = 4, 800, 2_000


def posteriors(python, sizes, releases, sigma, n):
    """Draws of the probabilities of all cells, and CPU seconds, for each of many releases.

    ``sizes`` is of each column. ``releases`` has noisy counts by numbers of columns, joined by
    " * ", and stacked along the first axis.
    """
    job = {"sizes": sizes, "sigma": sigma, "n": n}
    return elsewhere(python, "napsu_mq", job, releases)


def main(folder):
    import jax
    from twinify.napsu_mq import maximum_entropy_inference as inference
    from twinify.napsu_mq.marginal_query import FullMarginalQuerySet
    from twinify.napsu_mq.markov_network import MarkovNetwork

    job, given = handed_over(folder)
    given = {tuple(map(int, columns)): values for columns, values in given.items()}
    sizes, sigma, n = job["sizes"], job["sigma"], job["n"]
    values = {column: list(range(size)) for column, size in enumerate(sizes)}
    cells = np.array(list(product(*values.values())))
    found = {"cells": [], "seconds": []}
    for k in range(len(next(iter(given.values())))):
        began = process_time()
        queries = FullMarginalQuerySet(list(given), values).get_canonical_queries()
        network, asked = MarkovNetwork(values, queries), queries.flatten()
        noisy = np.array([given[tuple(x.inds)][(k, *x.value)] for x in asked.queries])
        options = {"num_samples": DRAWS, "num_warmup": TUNE, "num_chains": CHAINS}
        chains = inference.run_numpyro_mcmc(
            jax.random.PRNGKey(k), noisy, n, sigma, network, disable_progressbar=True, **options
        )
        logits = np.asarray(chains.get_samples()["lambdas"]) @ asked(cells).T
        found["seconds"].append(process_time() - began)
        p = np.exp(logits - logits.max(axis=1, keepdims=True))
        found["cells"].append((p / p.sum(axis=1, keepdims=True)).reshape(-1, *sizes))
    np.savez(folder / "found.npz", **found)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
