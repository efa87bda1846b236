"""The examples run, and say what they claim."""

import importlib.util
import inspect
import sys
from pathlib import Path

import numpy as np
import pytensor
import pytest
from scipy import stats

from tests.evaluated_in_python import REWRITTEN

EXAMPLES = Path(__file__).parents[1] / "examples"


def load(name, monkeypatch):
    # A script finds its neighbours because its folder is first on the path.
    monkeypatch.syspath_prepend(str(EXAMPLES))
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, name, module)
    spec.loader.exec_module(module)
    return module


@pytest.mark.long
@pytest.mark.parametrize("name", ["admissions", "randomised_response"])
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
        ("injuries", {"draws": 5, "tune": 5}, 1),
        ("invariants", {"draws": 200}, 1),
        ("answers", {"releases": 50, "draws": 100, "truths": (0, 50)}, 1),
        ("unknown_number", {"draws": 50, "tune": 50}, 1),
        ("private_proportion", {"draws": 1_000}, 1),
        ("published_methods", {"draws": 50, "tune": 50, "final_draws": 500}, 4),
    ],
)
def test_an_example_runs_with_few_draws(name, settings, figures, monkeypatch, tmp_path, capsys):
    example = load(name, monkeypatch)
    # PyMC's own steps draw so little that Python takes less time than compiling.
    mode = REWRITTEN if name == "injuries" else pytensor.config.mode
    with pytensor.config.change_flags(mode=mode):
        # One figure is a file; several are put in a folder.
        example.main(output=tmp_path / "figure.png" if figures == 1 else tmp_path, **settings)
    saved = list(tmp_path.glob("*.png"))
    assert len(saved) == figures
    assert all(figure.stat().st_size > 10_000 for figure in saved)
    assert capsys.readouterr().out.count("Figure: ") == figures


@pytest.mark.long
def test_the_broadband_examples_moves_keep_the_posterior(monkeypatch):
    """A hundred rows of each kind, with a noise scale each, against quadrature."""
    example = load("broadband", monkeypatch)
    kinds, n, level = [(0.4, 0.02), (0.4, 0.3), (1.0, 0.1)], 100, 0.4
    share, error_95 = np.repeat(kinds, n, axis=0).T
    rows = np.zeros(len(share), dtype=int)
    release = example.Release(share, rows, rows[:1], np.arange(len(rows)), {}, error_95, error_95)

    def log_likelihood(log_rate, scale, share=share):
        low = np.where(share == 0, -np.inf, share - 0.0005)
        high = np.where(share == 1, np.inf, share + 0.0005)
        rate = np.exp(log_rate)
        p = stats.laplace.cdf(high - rate, scale=scale) - stats.laplace.cdf(low - rate, scale=scale)
        upper = stats.laplace.sf(low - rate, scale=scale)
        return np.log(np.maximum(np.where(np.isinf(high), upper, p), 1e-300))

    x, log_scale = np.linspace(-4, 2.5, 4001)[:, None], np.linspace(-1.6, 1.6, 201)
    exact = []
    for y, error in kinds:
        scale = error / -np.log(0.05) * np.exp(log_scale)
        density = log_likelihood(x, scale, np.array(y)) - (x + 1) ** 2 / (2 * level)
        p = np.exp(density - log_scale**2 / (2 * example.SCALE_SPREAD**2))
        p /= p.sum()
        exact.append([(p * x).sum(), (p * log_scale).sum(), (p * x * log_scale).sum()])

    def off(moves_of_scales):
        moves = [moves_of_scales(log_likelihood, release)]
        moves.append(example.moves_of_rates(log_likelihood, release))
        rng, guess = np.random.default_rng(1), example.scale_by_quantile(release)
        point = {
            "log_rate": np.log(share),
            "scale": guess * np.exp(example.SCALE_SPREAD * rng.normal(size=len(share))),
            "in_county": np.array([-1.0]),
            "of_size": 0.0,
            "variance": np.array([1.0, 1.0, level]),
        }
        found = []
        for _ in range(1_500):
            for move in moves:
                point |= move(rng, point)
            a, b = point["log_rate"], np.log(point["scale"] / guess)
            found.append([a, b, a * b])
        # By quantity, kind and row: rows are independent chains.
        means = np.mean(found[500:], axis=0).reshape(3, len(kinds), n)
        error = means.std(axis=-1, ddof=1) / np.sqrt(n)
        return np.abs((means.mean(axis=-1) - np.transpose(exact)) / error).max()

    assert off(example.moves_of_scales) < 4.5
    source = inspect.getsource(example.moves_of_scales)
    assert "density - present + jacobian" in source
    names = {}
    exec(source.replace("density - present + jacobian", "density - present"), vars(example), names)
    assert off(names["moves_of_scales"]) > 6
