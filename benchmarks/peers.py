"""Ways to sample a workload, and how many effective draws a second each of them makes."""

import tempfile
from pathlib import Path
from time import process_time

import numpy as np
import pymc as pm
from arviz_stats.base import array_stats

import pymc_dapper as pmd
from benchmarks import r

QUIET = {"progressbar": False, "compute_convergence_checks": False}


def effective_draws(sampled):
    """Effective draws of the slowest column; ``sampled`` has shape (draws, parameters)."""
    return min(
        float(array_stats.ess(column[None], chain_axis=0, draw_axis=1, method="bulk"))
        for column in np.asarray(sampled, dtype=float).T
    )


def _result(sampled, seconds, more=None):
    ess = effective_draws(sampled)
    rates = {"seconds_per_draw": seconds / len(sampled), "ess_per_second": ess / seconds}
    return {"draws": len(sampled), "ess": ess, **rates, **(more or {})}


def _parameters(posterior, workload):
    draws = posterior.sizes["draw"]
    values = [posterior[name].values.reshape(draws, -1) for name in workload.parameters]
    return np.concatenate(values, axis=1)


def _with_pymc(sample, workload, draws, tune):
    """Sample one chain; count CPU time between the first and the last draw after tuning."""
    times = []

    def note(trace, draw):
        if draw.draw_idx in (tune, tune + draws):  # to look at the clock takes microseconds
            times.append(process_time())

    idata = sample(
        draws + 1,  # the clock runs from the end of the first
        tune=tune,
        chains=1,
        cores=1,
        random_seed=1,
        model=workload.build(),
        callback=note,
        var_names=list(workload.parameters),
        **QUIET,
    )
    seconds = times[1] - times[0]
    moves = idata.sample_stats.get("interweave_moves")
    more = {} if moves is None else {"moves": int(moves[0, -1])}
    return _result(_parameters(idata.posterior, workload)[1:], seconds, more)


def pymc_dapper(workload, draws, tune):
    """`pmd.sample`, as it comes."""
    return _with_pymc(pmd.sample, workload, draws, tune)


def pymc_defaults(workload, draws, tune):
    """`pm.sample` with the steps that PyMC chooses, records and all."""

    def sample(*args, **kwargs):
        return pm.sample(*args, nuts_sampler="pymc", **kwargs)

    return _with_pymc(sample, workload, draws, tune)


def by_hand(workload, draws, tune):
    """The loop written for this model."""
    rng = np.random.default_rng(1)
    workload.loop(rng, 2)
    began = process_time()
    sampled = workload.loop(rng, tune + draws)
    seconds = (process_time() - began) * draws / (tune + draws)
    return _result(sampled[tune:], seconds)


def nutpie(workload, draws, tune, parametrisation):
    """NUTS in Rust on all records at once. Time of many draws, less that of few."""
    import nutpie

    model = workload.unconstrained[parametrisation]()
    compiled = nutpie.compile_pymc_model(model, var_names=list(workload.parameters))
    options = {"tune": tune, "chains": 1, "cores": 1, "seed": 1, "save_warmup": False}

    def sample(draws):
        began = process_time()
        idata = nutpie.sample(compiled, draws=draws, progress_bar=False, **options)
        return idata, process_time() - began

    nutpie.sample(compiled, draws=1, progress_bar=False, **{**options, "tune": 1})  # compiles
    _, tuning = sample(1)
    idata, all_seconds = sample(draws + 1)
    return _result(_parameters(idata.posterior, workload)[1:], all_seconds - tuning)


def nutpie_centred(workload, draws, tune):
    """The model as it is written."""
    return nutpie(workload, draws, tune, "centred")


def nutpie_non_centred(workload, draws, tune):
    """Records as functions of standard noise."""
    return nutpie(workload, draws, tune, "non-centred")


def r_dapper(workload, draws, tune, script):
    """R's dapper, by a script of ours that calls its public functions."""
    with tempfile.TemporaryDirectory() as folder:
        sampled, seconds = r.run(script, workload.r_data, draws, tune, Path(folder))
    return _result(sampled, seconds * draws / (tune + draws))


PEERS = {
    "pymc_dapper": pymc_dapper,
    "by hand": by_hand,
    "PyMC's defaults": pymc_defaults,
    "nutpie, centred": nutpie_centred,
    "nutpie, non-centred": nutpie_non_centred,
    "R's dapper": r_dapper,
}
