"""R's dapper, where R and the package are installed: data go there, and draws come back, as CSV."""

import shutil
import subprocess
from pathlib import Path

import numpy as np

SCRIPTS = Path(__file__).parent / "r"


def why_not():
    """Why R's dapper can't be run; None if it can."""
    if shutil.which("Rscript") is None:
        return "R isn't installed"
    found = subprocess.run(
        ["Rscript", "-e", "quit(status = !requireNamespace('dapper', quietly = TRUE))"],
        capture_output=True,
        check=False,
    )
    return None if found.returncode == 0 else "R has no package dapper"


def run(script, data, draws, tune, folder):
    """Run a script of benchmarks/r; draws after warm-up, and seconds of all, warm-up included."""
    for name, values in data.items():
        np.savetxt(folder / f"{name}.csv", np.atleast_1d(values), fmt="%.17g")
    command = ["Rscript", SCRIPTS / f"{script}.R", folder, str(tune + draws), str(tune)]
    subprocess.run(command, check=True, capture_output=True, text=True)
    seconds = float((folder / "seconds.csv").read_text(encoding="utf-8"))
    return np.loadtxt(folder / "draws.csv", delimiter=",", skiprows=1, ndmin=2), seconds
