"""The example of a study runs, and says what it claims."""

import importlib.util
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

pytestmark = pytest.mark.long

EXAMPLES = Path(__file__).parents[1] / "examples"


@pytest.fixture
def example(monkeypatch):
    # A script finds its neighbours because its folder is first on the path.
    monkeypatch.syspath_prepend(str(EXAMPLES))
    spec = importlib.util.spec_from_file_location("budget_study", EXAMPLES / "budget_study.py")
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "budget_study", module)
    spec.loader.exec_module(module)
    return module


def test_both_mechanisms_keep_to_the_budget(example):
    for epsilon in example.GRID["epsilon"]:
        loss = example.response(epsilon).privacy_loss()
        assert loss.compose(loss).epsilon == pytest.approx(epsilon)
        noise = example.noise(epsilon)
        spent = noise.privacy_loss(sensitivity=2**0.5, delta=example.DELTA, bound="tight")
        assert spent.epsilon == pytest.approx(epsilon)


def test_the_study_prints_its_table_and_saves_its_figure(example, tmp_path, capsys):
    figure = tmp_path / "figure.png"
    # For this budget, `test_tables.py` needs the same compiled.
    grid = {**example.GRID, "epsilon": [8.0]}
    with ThreadPoolExecutor(1) as executor:
        example.main(
            1, draws=20, tune=20, grid=grid, output=figure, executor=executor, progressbar=False
        )
    assert figure.stat().st_size > 10_000
    printed = capsys.readouterr().out
    for mechanism in example.GRID["mechanism"]:
        for analysis in ("private", "naive"):
            assert f"{mechanism:21}{analysis:10}" in printed
