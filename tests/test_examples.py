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


@pytest.mark.parametrize("name", ["admissions", "randomised_response"])
def test_an_example_prints_its_table_and_saves_its_figure(name, monkeypatch, tmp_path, capsys):
    example = load(name, monkeypatch)
    figure = tmp_path / "figure.png"
    example.main(draws=30, tune=30, output=figure)
    assert figure.stat().st_size > 10_000
    printed = capsys.readouterr().out.lower()
    assert "odds ratio" in printed
    for analysis in ("confidential", "naive", "private"):
        assert analysis in printed
