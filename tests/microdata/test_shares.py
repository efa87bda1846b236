import numpy as np
import pytest
import xarray as xr

from pymc_dapper.microdata import shares

DRAWS = (2, 5)


def result(**dims):
    rng = np.random.default_rng(1)
    tables = {
        f"p_{name}": (
            ("chain", "draw", *own),
            rng.dirichlet([1.0] * 3, (*DRAWS, *[3] * (len(own) - 1))),
        )
        for name, own in dims.items()
    }
    return xr.DataTree.from_dict({"posterior": xr.Dataset(tables)})


def test_shares_of_a_chain_of_tables():
    idata = result(a=("a",), b=("a", "b"), c=("b", "c"), d=("c", "d"))
    post = idata.posterior
    joint = post["p_a"] * post["p_b"] * post["p_c"] * post["p_d"]
    for columns in (["a", "d"], ["d", "b"], ["a"], ["a", "b", "c", "d"]):
        expected = joint.sum([x for x in "abcd" if x not in columns])
        xr.testing.assert_allclose(
            shares(idata, columns), expected.transpose("chain", "draw", *columns)
        )
    np.testing.assert_allclose(shares(idata, "c").sum("c"), 1)


def test_shares_of_latent_classes():
    idata = result(z=("z",), a=("z", "a"), b=("z", "b"))
    post = idata.posterior
    expected = (post["p_z"] * post["p_a"] * post["p_b"]).sum("z")
    xr.testing.assert_allclose(shares(idata, ["a", "b"]), expected)


def test_columns_without_a_table_are_refused():
    with pytest.raises(ValueError, match=r"no 'p_race' with dim 'race', .*\. It has those of a, b"):
        shares(result(a=("a",), b=("a", "b")), ["a", "race"])
    with pytest.raises(ValueError, match="different names, one at least"):
        shares(result(a=("a",)), ["a", "a"])


def test_a_share_of_some_people_is_not_taken_for_the_joint_one():
    # A Deterministic of a model of one's own: the ill among those of each age.
    idata = result(a=("a",), b=("a", "b"))
    expected = shares(idata, ["a", "b"])
    post = idata.posterior.to_dataset()
    idata = xr.DataTree.from_dict({"posterior": post.assign({"share_b": post["p_b"]})})
    xr.testing.assert_allclose(shares(idata, ["a", "b"]), expected)
    # Without tables, it isn't joint either: those of each a add up to one.
    idata = xr.DataTree.from_dict({"posterior": xr.Dataset({"share_b": post["p_b"]})})
    with pytest.raises(ValueError, match=r"no table of all columns\. Count synthetic people"):
        shares(idata, ["a", "b"])


def test_a_probability_without_the_columns_dim_is_refused():
    idata = result(a=("a",), b=("a", "b"))
    post = idata.posterior.to_dataset()
    post["p_b"] = post["p_b"].sum("b")
    idata = xr.DataTree.from_dict({"posterior": post})
    with pytest.raises(ValueError, match=r"no 'p_b' with dim 'b', .*\. It has those of a$"):
        shares(idata, ["b"])
