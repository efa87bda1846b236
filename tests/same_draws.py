"""Whether a change of the code leaves all draws as they were, bit for bit.

    python -m tests.same_draws record DIR     before the change
    python -m tests.same_draws compare DIR    after it: says what differs, and ends with status 1

Record runs every case of `same_draws_cases.py` with two seeds. It writes a hash over all draws and
sampler statistics to DIR/hashes.json, and the arrays themselves to DIR/CASE.npz. Statistics that
are times are left out. Cases that are there already are skipped, unless called with --again. Both
take --only WORD for the cases with a word in their name, and --workers K.

To record what the code was at an older commit, check that out as a worktree of its own, copy both
files into its tests, and record there, with PYTHONPATH set to it.

All is compiled without fast-math, which users have: with it, last digits depend on what is in
PyTensor's cache. Draws still depend on the machine, and on the versions of Python and all
libraries: compare only what was recorded on the same machine with the same versions, and never
commit what was recorded.
"""

import argparse
import hashlib
import json
import multiprocessing
import re
import sys
import traceback
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path
from time import perf_counter

import numpy as np

from tests.same_draws_cases import CASES, quietly

SEEDS = (1, 2)


def run(name):
    """Run a case with each seed: arrays by seed and name, or what went wrong; and the seconds."""
    began = perf_counter()
    try:
        with quietly():
            draw = CASES[name]()
            found = {f"{seed}/{key}": x for seed in SEEDS for key, x in draw(seed).items()}
    except Exception:
        found = traceback.format_exc(limit=-6)
    return found, perf_counter() - began


def run_all(names, workers):
    """Run cases, and yield each as it is done: its name, what was found, and the seconds."""
    if workers == 1:
        for name in names:
            yield name, *run(name)
        return
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(workers, mp_context=context) as pool:
        pending = {pool.submit(run, name): name for name in names}
        for done in as_completed(pending):
            yield pending[done], *done.result()


def hashes(arrays):
    """A hash for each seed, over all of its arrays."""
    found = {}
    for seed in SEEDS:
        digest = hashlib.sha256()
        for key in sorted(key for key in arrays if key.startswith(f"{seed}/")):
            x = arrays[key]
            digest.update(f"{key} {x.dtype.str} {x.shape}".encode())
            digest.update(x.tobytes())
        found[str(seed)] = digest.hexdigest()
    return found


def file_of(folder, name):
    return folder / f"{re.sub(r'[^a-z0-9]+', '_', name.lower())}.npz"


def record(folder, names, again, workers):
    """Write hashes and arrays of cases; return how many failed."""
    folder.mkdir(parents=True, exist_ok=True)
    index = folder / "hashes.json"
    recorded = json.loads(index.read_text("utf-8")) if index.exists() else {}
    names = [name for name in names if again or name not in recorded]
    failed = 0
    for name, found, seconds in run_all(names, workers):
        if isinstance(found, str):
            failed += 1
            print(f"{name}: failed\n{found}", flush=True)
            continue
        np.savez_compressed(file_of(folder, name), **found)
        recorded[name] = hashes(found)
        index.write_text(json.dumps(recorded, indent=1, sort_keys=True) + "\n", "utf-8")
        print(f"{name}: recorded in {seconds:.1f} s", flush=True)
    print(f"{len(names) - failed} cases recorded, {failed} failed")
    return failed


def compare(folder, names, workers, only):
    """Say of each case whether it is the same; return how many aren't."""
    recorded = json.loads((folder / "hashes.json").read_text("utf-8"))
    recorded = {name: found for name, found in recorded.items() if only in name}
    both = [name for name in names if name in recorded]
    other = 0
    for name, found, seconds in run_all(both, workers):
        if isinstance(found, str):
            said = [found]
        elif hashes(found) == recorded[name]:
            said = []
        else:
            with np.load(file_of(folder, name)) as before:
                said = list(differences(before, found))
        other += bool(said)
        first = f"{name}: {'not ' * bool(said)}the same ({seconds:.1f} s)"
        print("\n    ".join([first, *said]), flush=True)
    only_here = [f"{name}: never recorded" for name in names if name not in recorded]
    only_there = [
        f"{name}: recorded, but no case any more" for name in recorded if name not in names
    ]
    print("\n".join([*only_here, *only_there, f"{len(both) - other} the same, {other} not"]))
    return other + len(only_here) + len(only_there)


def differences(before, after):
    """Say what differs between two sets of arrays."""
    for key in sorted({*before, *after}):
        if key not in after or key not in before:
            yield f"{key} {'is new' if key in after else 'is gone'}"
            continue
        old, new = before[key], after[key]
        text = old.dtype.kind == new.dtype.kind == "U"
        if old.shape != new.shape or not (text or old.dtype == new.dtype):
            yield f"{key} was {old.dtype} {old.shape} and is {new.dtype} {new.shape}"
        elif old.tobytes() != new.tobytes():
            changed = unequal(old, new)
            first = tuple(int(k) for k in np.argwhere(changed)[0]) if changed.any() else ()
            share = f"{changed.mean():.1%} of {key}, first at {first}"
            if text:
                yield f"{share}: {old[first]!r} was, {new[first]!r} is"
            else:
                yield f"{share}: {old[first]} was, {new[first]} is; largest {largest(old, new):.1e}"


def unequal(old, new):
    same = old == new
    if old.dtype.kind == "f":
        same |= np.isnan(old) & np.isnan(new)
        same &= np.signbit(old) == np.signbit(new)
    return ~np.asarray(same)


def largest(old, new):
    """Largest relative difference; infinite where one isn't finite and the other isn't the same."""
    changed = unequal(old, new)
    if not changed.any():
        return 0.0  # nothing but the bits of a nan
    x, y = (each[changed].astype(np.float64) for each in (old, new))
    with np.errstate(all="ignore"):
        relative = np.abs(x - y) / np.maximum(np.abs(x), np.abs(y))
    relative[(x == 0) & (y == 0)] = 0
    return float(np.nan_to_num(relative, nan=np.inf).max())


def main(arguments=None):
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=["record", "compare", "list"])
    parser.add_argument("folder", type=Path, nargs="?", help="where it was, or will be, recorded")
    parser.add_argument("--only", default="", metavar="WORD", help="cases with this in their name")
    parser.add_argument("--again", action="store_true", help="record what is recorded already, too")
    parser.add_argument("--workers", type=int, default=1, help="processes")
    given = parser.parse_args(arguments)
    names = [name for name in CASES if given.only in name]
    if given.what == "list":
        print("\n".join(names))
        return 0
    if given.folder is None:
        parser.error(f"{given.what} needs a folder")
    if given.what == "record":
        failed = record(given.folder, names, given.again, given.workers)
    else:
        failed = compare(given.folder, names, given.workers, given.only)
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
