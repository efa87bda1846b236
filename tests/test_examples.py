"""The examples run, and say what they claim."""

import importlib.util
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[1] / "examples"


def load(name, monkeypatch):
    # A script finds its neighbours because its folder is first on the path.
    monkeypatch.syspath_prepend(str(EXAMPLES))
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, name, module)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    "name", ["admissions", pytest.param("randomised_response", marks=pytest.mark.long)]
)
def test_an_example_prints_its_table_and_saves_its_figure(name, monkeypatch, tmp_path, capsys):
    example = load(name, monkeypatch)
    figure = tmp_path / "figure.png"
    example.main(draws=30, tune=30, output=figure)
    assert figure.stat().st_size > 10_000
    assert "<svg" in figure.with_suffix(".svg").read_text("utf-8")
    printed = capsys.readouterr().out.lower()
    assert "odds ratio" in printed
    for analysis in ("confidential", "naive", "private"):
        assert analysis in printed


@pytest.mark.long
def test_the_regression_prints_every_coefficient_by_every_analysis(monkeypatch, tmp_path, capsys):
    example = load("regression", monkeypatch)
    figure = tmp_path / "figure.png"
    example.main(draws=30, tune=30, output=figure)
    assert figure.stat().st_size > 10_000
    printed = capsys.readouterr().out
    for coefficient in example.COEFFICIENTS:
        for analysis in ("confidential", "naive", "private"):
            assert f"{coefficient:12}{analysis:14}" in printed


@pytest.mark.long
# Monte Carlo EM says that so few draws aren't enough. Here they needn't be.
@pytest.mark.filterwarnings("ignore:the (last sample|last steps|Monte Carlo error):UserWarning")
@pytest.mark.parametrize(
    ("name", "settings", "figures"),
    [
        ("births", {"draws": 50, "tune": 50}, 1),
        ("broadband", {"draws": 30, "tune": 30, "states": ["DE", "RI"]}, 1),
        ("census", {"draws": 50, "tune": 50}, 1),
        ("census_blocks", {"blocks": 300}, 1),
        ("invariants", {"draws": 200}, 1),
        ("unknown_number", {"draws": 50, "tune": 50}, 1),
        ("private_proportion", {"draws": 1_000}, 1),
        ("published_methods", {"draws": 50, "tune": 50, "final_draws": 500}, 4),
    ],
)
def test_an_example_runs_with_few_draws(name, settings, figures, monkeypatch, tmp_path, capsys):
    example = load(name, monkeypatch)
    # One figure is a file; several are put in a folder.
    example.main(output=tmp_path / "figure.png" if figures == 1 else tmp_path, **settings)
    saved = list(tmp_path.glob("*.png"))
    assert len(saved) == figures
    assert all(figure.stat().st_size > 10_000 for figure in saved)
    assert capsys.readouterr().out.count("Figure: ") == figures
