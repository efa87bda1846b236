import numpy as np

import pymc_dapper as pmd
from pymc_dapper.releases.table import as_html, as_text

NOISE = pmd.LaplaceMechanism(2.0)
QUERIES = [
    pmd.Query("a<b", np.arange(8.0), NOISE, "cell"),
    pmd.Query("few", np.ma.masked_array([5.0, 0.0], [0, 1]), NOISE.published_if(">=", 3)),
    pmd.Query("total", 3.25, NOISE),
]


def test_a_release_is_shown_as_a_table():
    expected = """\
Release of 3 queries, PureDP(epsilon=1, one person changes)
query  dims  shape  values         mechanism
a<b    cell  8      0 to 7         LaplaceMechanism(scale=2)
few    -     2      5, suppressed  LaplaceMechanism(scale=2).published_if('>=', 3)
total  -     -      3.25           LaplaceMechanism(scale=2)"""
    assert as_text(QUERIES, pmd.PureDP(1.0)) == expected
    assert repr(pmd.Release(QUERIES, pmd.PureDP(1.0))) == expected


def test_html_is_escaped():
    html = as_html(QUERIES, None)
    assert html.count("<tr>") == 4
    assert "<td>a&lt;b</td>" in html
    assert "&#x27;&gt;=&#x27;" in html
    assert pmd.Release(QUERIES)._repr_html_() == html
