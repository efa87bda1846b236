"""Kernels of trees are made when they are used."""

import subprocess
import sys

import numpy as np
import pytest

from pymc_dapper.counts.trees import compiled, nodes

MADE = """
from pymc_dapper.backend import jit
jit.kept_on_disk = lambda kernel: 1 / 0
import pymc_dapper.counts.step
"""


def test_counts_that_are_on_no_tree_make_none():
    subprocess.run([sys.executable, "-c", MADE], check=True)


def test_each_is_made_once_and_does_what_its_source_does():
    assert compiled.in_post_order is compiled.in_post_order
    parent = np.array([2, 2, -1])
    for mine, plain in zip(
        compiled.in_post_order(parent), nodes.in_post_order.py_func(parent), strict=True
    ):
        np.testing.assert_array_equal(mine, plain)


def test_there_are_no_others():
    with pytest.raises(AttributeError, match="ascent"):
        _ = compiled.ascent
