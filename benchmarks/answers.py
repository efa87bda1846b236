"""The first answer of `Release.posterior`: CPU seconds in a new process, after imports.

Asked are intervals of all cells and of their sum, with Laplace noise; beside noisyvalue
(https://github.com/sbaldasty/noisyvalue), if a checkout of it is given, with Gaussian noise, which
is what it has, and for tables of up to 100 cells: its time grows faster than the table.

    python -m benchmarks.answers --peer CHECKOUT --page docs/evidence/measured.md
"""

import argparse
import json
import subprocess
import sys
from pathlib import Path

from benchmarks._models import example

markdown = example("_markdown")

SIZES = (10, 100, 1_000, 10_000)
MOST_OF_PEER = 100

OURS = """
import json, sys, time
import numpy as np, pymc, pymc_dapper as pmd, pymc_dapper.answers.posterior, xarray
xarray.DataArray([0])  # with the first one, xarray imports what it knows of other arrays
n, noise = int(sys.argv[1]), getattr(pmd, sys.argv[2])(5.0)
values = np.random.default_rng(1).integers(20, 100, n) + np.random.default_rng(2).normal(0, 5, n)
start = time.process_time()
cases = pmd.Release(pmd.Query("cases", values, noise, "cell")).posterior(random_seed=1)
ends = cases.interval().values, cases.sum().interval().values
seconds = time.process_time() - start
print(json.dumps([seconds, ends[0][:, 0].tolist(), ends[1].tolist()]))
"""

PEER = """
import json, sys, time
root = sys.argv[2]
sys.path[:0] = [root]
import types, importlib.util
spec = importlib.util.spec_from_file_location("util", root + "/src/util.py")
sys.modules["util"] = importlib.util.module_from_spec(spec)
spec.loader.exec_module(sys.modules["util"])
import numpy as np
from sympy import sympify
from src.core import NoisyFloat, sample_noisy_values
from src.graph import DerivedNode, LatentNode, NormalNode

def cell(value):
    noise, truth = NormalNode.create(loc=0.0, scale=5.0), LatentNode()
    equation = truth.expr + noise.expr - sympify(value)
    return NoisyFloat(value, DerivedNode(truth.expr, (equation,), (truth, noise)))

n = int(sys.argv[1])
values = np.random.default_rng(1).integers(20, 100, n) + np.random.default_rng(2).normal(0, 5, n)
start = time.process_time()
cells = [cell(float(x)) for x in values]
drawn = sample_noisy_values(*cells, sum(cells), n=4000, rng=np.random.default_rng(1))
ends = [np.quantile(x.draws.astype(float), [0.05, 0.95]) for x in drawn]
seconds = time.process_time() - start
print(json.dumps([seconds, ends[0].tolist(), ends[-1].tolist()]))
"""


def measured(code, *arguments):
    """CPU seconds, and the intervals of the first cell and of the sum."""
    command = [sys.executable, "-W", "ignore", "-c", code, *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])


def shown(ends):
    return " to ".join(f"{end:.0f}" for end in ends)


def main(sizes=SIZES, peer=None, page=None):
    rows = []
    for n in sizes:
        seconds, *_ = measured(OURS, n, "LaplaceMechanism")
        row = [f"{n:,}", f"{seconds:.2f}", "", "", "", ""]
        if peer is not None and n <= MOST_OF_PEER:
            own, theirs = measured(OURS, n, "GaussianMechanism"), measured(PEER, n, peer)
            row[2:] = [f"{own[0]:.2f}", f"{theirs[0]:.2f}", shown(own[2]), shown(theirs[2])]
        rows.append(row)
    header = ["cells", "Laplace", "Gaussian", "noisyvalue", "the sum", "by noisyvalue"]
    table = markdown.table(header, rows, 0)
    print(table)
    markdown.fill_file(page, {"time": table})


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--peer", type=Path, help="a checkout of noisyvalue")
    parser.add_argument("--page", type=Path, help="a page whose table is filled in")
    arguments = parser.parse_args()
    main(peer=arguments.peer, page=arguments.page)
