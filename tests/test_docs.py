"""Pages of the documentation do what they say: their code runs and prints what stands below it."""

import contextlib
import io
import re
from pathlib import Path

import pytest

import pymc_dapper as pmd

DOCS = Path(__file__).parents[1] / "docs"


@pytest.mark.long
# How a model is read: one of its models takes full evaluations, and says so.
@pytest.mark.filterwarnings("ignore:DapperStep has to evaluate the model anew:UserWarning")
@pytest.mark.parametrize(
    "name",
    [
        "conjugate-steps.md",
        "latent-counts.md",
        "mechanisms.md",
        "monte-carlo-em.md",
        "plots.md",
        "private-proportion.md",
        "reading-a-model.md",
        "rejection-abc.md",
        "sampling.md",
        "small-budgets.md",
        "studies.md",
    ],
)
def test_a_page_prints_what_it_says(name):
    blocks = re.findall(r"```(python|text)\n(.*?)```", (DOCS / name).read_text(), flags=re.DOTALL)
    names, printed = {}, ""
    for kind, block in blocks:
        if kind == "text":
            assert printed == block
            continue
        with contextlib.redirect_stdout(io.StringIO()) as output:
            exec(compile(block, name, "exec"), names)
        printed = output.getvalue()


def test_the_api_page_has_every_public_name():
    page = (DOCS / "api.md").read_text()
    modules = {"conjugacy", "diagnostics", "statistics"}
    names = [name for name in pmd.__all__ if name not in modules]
    names += [f"{module}.{name}" for module in modules for name in getattr(pmd, module).__all__]
    missing = [n for n in names if not re.search(rf":: pymc_dapper\.(\w+\.)*{n}$", page, re.M)]
    assert not missing
