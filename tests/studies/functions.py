"""A small study, in a module that worker processes can import."""

import os
import signal
import time
from collections import Counter
from pathlib import Path
from uuid import uuid4

import pymc as pm

import pymc_dapper as pmd

TIMINGS = ("build_seconds", "sample_seconds", "seconds", "ess_per_second")
"""Fields of a study that depend on the machine, not only on the seed."""
N = 20
GRID = {"share": [0.3, 0.7]}
FAST = {"draws": 40, "tune": 20, "interweave": False}
MECHANISM = pmd.DiscreteLaplaceMechanism.calibrate(pmd.PureDP(1.0), sensitivity=1)


def simulate(rng, share):
    """Twenty answers; only the noisy number of ones is released."""
    return {"count": MECHANISM.release(rng.binomial(N, share), rng)}, {"p": share}


def build(released, share):
    with pm.Model() as model:
        count = pm.Data("count", released["count"])
        p = pm.Beta("p", 1, 1)
        record = pm.Bernoulli("record", p, shape=N)
        MECHANISM.potential("privacy", record.sum(), released=count)
    return model


def build_light(released, share):
    """A naive analysis, which is soon built: the count is taken as true."""
    with pm.Model() as model:
        count = pm.Data("count", min(max(released["count"], 0), N))
        pm.Binomial("answers", N, pm.Beta("p", 1, 1), observed=count)
    return model


def simulate_and_note(rng, share, folder):
    """As simulate; leaves a file that says that the cell was begun, and by which process."""
    time.sleep(0.05)
    result = simulate(rng, share)
    (Path(folder) / f"begun-{_name(share, rng)}-{os.getpid()}-{uuid4().hex}").touch()
    return result


def _name(share, rng):
    """A cell's name in notes: its random numbers are its own."""
    return f"{share}_{rng.integers(2**62)}"


def _begun(folder):
    return len(list(Path(folder).glob("begun-*")))


def notes(folder):
    """How often each cell was begun, and the processes that did it."""
    parts = [path.name.split("-") for path in Path(folder).glob("begun-*")]
    return Counter(name for _, name, *_ in parts), {int(pid) for _, _, pid, _ in parts}


def wait_until(condition):
    for _ in range(1200):
        if condition():
            return
        time.sleep(0.1)
    raise AssertionError("waited in vain")


def simulate_and_wait(rng, share, folder):
    """As simulate_and_note; cells of share 0.7 aren't finished before there is a file "go on"."""
    result = simulate_and_note(rng, share, folder)
    wait_until(lambda: share != 0.7 or (Path(folder) / "go on").exists())
    return result


def simulate_and_die(rng, share, folder, store):
    """As simulate_and_note; at the first cell of share 0.7, the process dies."""
    result = simulate_and_note(rng, share, folder)
    if share == 0.7:
        try:
            (Path(folder) / "died").touch(exist_ok=False)
        except FileExistsError:
            return result
        # Not before all other cells that were begun are with the main process.
        wait_until(lambda: len(list(Path(store).glob("*.parquet"))) >= _begun(folder) - 1)
        time.sleep(0.5)  # nor before Dask's scheduler has heard of it
        os.kill(os.getpid(), signal.SIGKILL)
    return result


def simulate_and_fail(rng, share):
    if share == 0.7:
        raise ZeroDivisionError("no such share")
    return simulate(rng, share)


def same(one, other):
    """Whether two results are the same to the bit, in everything but timings."""
    groups = {
        path: (one[path].dataset.drop_vars(TIMINGS, errors="ignore"), group.dataset)
        for path, group in other.subtree_with_keys
    }
    return one.groups == other.groups and all(
        mine.identical(yours.drop_vars(TIMINGS, errors="ignore")) for mine, yours in groups.values()
    )
