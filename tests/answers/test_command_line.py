"""The command line."""

import re
import runpy
import sys

import numpy as np
import pandas as pd
import pytest

import pymc_dapper as pmd
from pymc_dapper.answers.command_line import main

CSV = "district,cases,scale\nA,12.3,5\nB,40.1,5\nC,7.7,10\n"
USUAL = ["--values", "cases", "--noise", "laplace", "--dims", "district", "--seed", "1"]


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "cases.csv"
    path.write_text(CSV)
    return str(path)


def test_it_prints_the_table_and_writes_a_file(file, tmp_path, capsys):
    written = tmp_path / "intervals.csv"
    assert main([file, *USUAL, "--scale", "5", "--csv", str(written)]) == 0
    shown = capsys.readouterr().out
    assert shown.splitlines()[0].split() == ["released", "median", "lower", "upper"]
    assert "Method: exact and independent draws, each cell by itself." in shown
    header, first, *_ = written.read_text().splitlines()
    assert header == "district,released,median,lower,upper"
    assert first.startswith("A,12.3,1")


def test_scales_may_be_a_column_and_values_several(file, capsys):
    values = ["--values", "cases", "--scale", "scale", "--draws", "500"]
    assert main([file, *USUAL, *values, "--probability", "0.5"]) == 0
    assert "Intervals hold 50 %." in capsys.readouterr().out
    both = ["--values", "cases", "scale", "--scale", "5", "--between", "-100", "100"]
    assert main([file, *USUAL, *both]) == 0
    assert capsys.readouterr().out.count("flat from -100 to 100") == 2


def test_what_was_done_to_noisy_values_is_said_in_its_order(tmp_path):
    path, written = tmp_path / "cases.csv", tmp_path / "intervals.csv"
    path.write_text("district,cases\nA,15\nB,40\nC,\n")
    usual = [str(path), *USUAL, "--csv", str(written)]
    cases = np.ma.masked_array([15, 40, 0], [False, False, True])

    def expected(mechanism, prior="flat"):
        query = pmd.Query("cases", cases, mechanism, "district", {"district": ["A", "B", "C"]})
        return pmd.Release(query).posterior(random_seed=1, prior=prior).to_frame()

    def written_by(*rules):
        assert main([*usual, "--scale", "2", *rules]) == 0
        return pd.read_csv(written, index_col="district")

    rules = ["--rounded", "5", "--published-from", "10"]
    mechanism = pmd.LaplaceMechanism(2).rounded(5).published_if(">=", 10)
    pd.testing.assert_frame_equal(written_by(*rules), expected(mechanism))
    rules = ["--clamped", "none", "40", "--published-above", "10", "--at-most", "100"]
    mechanism = pmd.LaplaceMechanism(2).clamped(None, 40).published_if(">", 10)
    pd.testing.assert_frame_equal(written_by(*rules), expected(mechanism, range(101)))
    usual.remove("--noise")
    usual.remove("laplace")
    path.write_text("district,cases\nA,15\nB,39\n")
    assert main([*usual, "--random-rounding", "3"]) == 0
    frame = pd.read_csv(written)
    assert np.all((frame["released"] - frame["lower"]) <= 2)


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        (["--scale", "-5"], "'cases': scale of the laplace noise"),
        (["--scale", "5", "--values", "deaths"], "there is no column 'deaths'|deaths"),
        (["--scale", "5", "--at-most", "-1"], "--at-most must be a whole number of at least 0"),
        (["--scale", "5", "--draws", "0"], "draws must be a whole number of at least 1"),
        (["--scale", "5", "--total", "-3"], "total must be whole numbers from 0"),
        ([], "'cases': scale is missing, that of the laplace noise"),
        (["--scale", "scale", "--rounded", "5"], "--scale must be a number where noisy values"),
        (["--scale", "5", "--rounded", "-5"], "step must be"),
        (["--scale", "5", "--csv", "x", "--values", "cases", "scale"], "--csv is for one column"),
    ],
)
def test_mistakes_are_answered_in_a_sentence(file, wrong, told, capsys):
    assert main([file, *USUAL, *wrong]) == 1
    error = capsys.readouterr().err
    assert error.startswith("python -m pymc_dapper: ")
    assert re.search(told, error)


@pytest.mark.parametrize(
    ("cell", "told"),
    [
        ("", "no value of district 'D'.*in a shell by --published-from 10"),
        ("x", "got 'x' at district 'D'. Leave suppressed values empty"),
    ],
)
def test_an_option_is_named_for_a_cell_without_a_number(file, cell, told, capsys):
    with open(file, "a") as opened:
        opened.write(f"D,{cell},5\n")
    assert main([file, *USUAL, "--scale", "5"]) == 1
    assert re.search(told, capsys.readouterr().err)


def test_a_missing_file_is_reported(capsys):
    assert main(["missing.csv", *USUAL, "--scale", "5"]) == 1
    assert "missing.csv" in capsys.readouterr().err


def test_python_runs_it(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["pymc_dapper", "--help"])
    with pytest.raises(SystemExit) as stopped:
        runpy.run_module("pymc_dapper", run_name="__main__")
    assert stopped.value.code == 0
    assert "Intervals of the true values behind a table of noisy ones." in capsys.readouterr().out
