"""Environments for libraries whose releases are read, which the project doesn't depend on.

Each holds one library, as an extra of `pyproject.toml` names it, with the versions that it needs;
behind it lies the environment that runs the tests, so that a release is made by the library and
read by this package in one process. They are kept, in `.venv-libraries`, until the extra changes.
"""

import os
import subprocess
import sys
import sysconfig
import tomllib
from importlib.metadata import version
from pathlib import Path

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / ".venv-libraries"

SHARED = ("numpy", "scipy")
"""What both need is of one version: the project's compiled parts are for that one."""


def requirements(library):
    """What an extra asks for."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    return project["optional-dependencies"][f"test-{library}"]


def python_with(library):
    """Make the environment of a library, if it isn't there, and return its Python."""
    folder, wanted = FOLDER / library, requirements(library)
    wanted = [*wanted, *(f"{name}=={version(name)}" for name in SHARED)]
    python, stamp = folder / "bin" / "python", folder / "installed.txt"
    if not stamp.is_file() or stamp.read_text("utf-8").split("\n") != wanted:
        # Without a pip of its own, and compiling only what is imported.
        subprocess.run(
            [sys.executable, "-m", "venv", "--clear", "--without-pip", folder], check=True
        )
        pip = [sys.executable, "-m", "pip", "--python", python, "--disable-pip-version-check"]
        subprocess.run([*pip, "install", "-q", "--no-compile", *wanted], check=True)
        [site_packages] = folder.glob("lib/python*/site-packages")
        (site_packages / "project.pth").write_text(sysconfig.get_path("purelib"), "utf-8")
        stamp.write_text("\n".join(wanted), "utf-8")
    return python


def run_tests(library):
    """Run the tests of a library in its environment, and return what pytest said."""
    file = Path(__file__).parent / f"of_{library.replace('-', '_')}.py"
    # The libraries' own warnings are theirs.
    options = ["-q", "-p", "no:cacheprovider", "-o", "filterwarnings=default"]
    return subprocess.run(
        [python_with(library), "-m", "pytest", *options, file],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
