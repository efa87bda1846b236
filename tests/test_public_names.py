"""What `import pymc_dapper` gives, and when it is imported."""

import ast
import json
import subprocess
import sys
import traceback
from pathlib import Path

import pytest

import pymc_dapper

ROOT = Path(pymc_dapper.__file__).parent
STUB = ast.parse((ROOT / "__init__.pyi").read_text())

LISTED = """
import json
import sys
import pymc
before, lists = set(sys.modules), []
for code in {codes!r}:
    exec(code)
    lists.append(sorted(set(sys.modules) - before))
print(json.dumps([lists, settings, "pymc.dims" in before]))
"""

IMPORT = "import pymc_dapper as pmd"

SEARCHED = """
import gc
gc.collect()
gc.freeze()  # to count the objects that are searched
gc.unfreeze()
usual = gc.get_threshold()
gc.set_threshold(1, 1, 1)
pmd.sample, pmd.LaplaceMechanism
settings = [*gc.get_threshold(), gc.get_freeze_count()]
gc.set_threshold(*usual)
"""

MODEL = """
from pymc_dapper.context import model_to_read
with pymc.Model() as model:
    p = pymc.Beta("p", 1, 1)
    record = pymc.Bernoulli("record", p, shape=5)
    scale = pmd.budget.laplace_scale(budget=pmd.PureDP(1.0), sensitivity=1.0)
    mechanism = pmd.LaplaceMechanism(scale)
    mechanism.potential("privacy", record.sum(), released=3.0)
model_to_read(model)
pmd.sample, pmd.assign_steps, pmd.DapperStep, pmd.CountStep, pmd.InterweaveStep
"""

PLOTS = "import pymc_dapper.plots"

HEAVY = ("arviz_plots", "arviz_stats", "matplotlib", "scipy.optimize", "scipy.stats")
OF_OURS = ("diagnostics", "planning", "plots", "reference", "studies", "synthetic")


@pytest.fixture(scope="module")
def imported():
    """Names of the modules that are imported after PyMC, one piece of code after the other."""
    codes = [IMPORT, SEARCHED, MODEL, PLOTS]
    done = subprocess.run(  # a process of its own, which takes seconds to start
        [sys.executable, "-c", LISTED.format(codes=codes)],
        capture_output=True,
        text=True,
        check=True,
    )
    lists, settings, dims_before = json.loads(done.stdout)
    return dict(zip(codes, lists, strict=True)) | {"settings": settings, "dims": dims_before}


def test_importing_the_package_imports_nothing_else(imported):
    assert imported[IMPORT] == ["lazy_loader", "pymc_dapper", "pymc_dapper.garbage"]


def test_a_model_and_its_steps_import_nothing_for_what_comes_after_sampling(imported):
    assert "pymc_dapper.assignment" in imported[MODEL]
    unused = (*HEAVY, *(f"pymc_dapper.{name}" for name in OF_OURS))
    assert [name for name in imported[MODEL] if name.startswith(unused)] == []


def test_what_exists_is_not_searched_while_names_are_imported(imported):
    assert imported["settings"] == [1, 1, 1, 0]


def test_named_dims_are_imported_only_where_they_are_used(imported):
    assert not imported["dims"]
    assert "pymc.dims" not in imported[MODEL]


def test_importing_the_plots_imports_no_plotting_library(imported):
    assert "pymc_dapper.plots" in imported[PLOTS]
    assert {"arviz_plots", "matplotlib"}.isdisjoint(imported[PLOTS])


def test_every_public_name_leads_somewhere_and_type_checkers_see_the_same():
    assert dir(pymc_dapper) == sorted(pymc_dapper.__all__)
    for name in pymc_dapper.__all__:
        assert getattr(pymc_dapper, name) is not None
    [shown] = [
        ast.literal_eval(node.value)
        for node in STUB.body
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__"
    ]
    assert sorted(shown) == sorted(pymc_dapper.__all__)


def test_folders_are_found_without_importing_them_by_name():
    assert pymc_dapper.budget.compose.__module__ == "pymc_dapper.budget.kinds"


def test_a_mistyped_name_is_answered_by_the_nearest():
    with pytest.raises(AttributeError, match="sampel") as raised:
        pymc_dapper.sampel  # noqa: B018
    [shown] = traceback.format_exception_only(raised.value)
    assert shown.endswith("Did you mean: 'sample'?\n")
