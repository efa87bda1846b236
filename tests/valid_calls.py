"""A valid call of every public function, class and method, for the test of malformed inputs.

Who adds a public function adds a line here, by its name within the package: a function of no
arguments that returns the arguments, by name, of a call that is valid and cheap.
"""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pymc as pm
import pytensor.tensor as pt
import xarray as xr
from pymc.step_methods import BlockedStep

import pymc_dapper as pmd
from pymc_dapper import budget

BUDGET = pmd.PureDP(1.0)
CATEGORIES, NUMBERS = np.array([0, 1, 1, 2]), np.array([0.1, 0.4, 0.3, 0.9])

MEASUREMENT = SimpleNamespace(
    __opendp_dict__={
        "__function__": "make_randomized_response_bool",
        "__kwargs__": {"prob": 0.75},
    }
)


class Laplace(SimpleNamespace):
    """As diffprivlib's."""

    def randomise(self, value):
        return value


DIFFPRIVLIB = Laplace(epsilon=1.0, delta=0.0, sensitivity=1.0)


def datavector(factor):
    return factor


MARGINAL = SimpleNamespace(
    noisy_measurement=np.array([1.0, 2.0]), clique=("sex",), stddev=2.0, query=datavector
)


class Idle(BlockedStep):
    """A step that leaves its variables as they are."""

    def step(self, point):
        return point, [{}]


def model():
    with pm.Model() as built:
        p = pm.Beta("p", 1, 1)
        record = pm.Bernoulli("record", p, shape=5)
        total = pm.Poisson("total", 5 * p)
        pm.Potential("privacy", -pt.abs(record.sum() + total - 3.0))
    return built


MODEL = model()


def sized_model():
    with pm.Model() as built:
        n = pm.Poisson("n", 3)
        x = pm.Normal("x", shape=6)
        pm.Potential("privacy", -pt.abs((pmd.present(n, 6) * x).sum()))
    return built


SIZED = sized_model()


def released_model():
    with pm.Model() as built:
        record = pm.Bernoulli("record", pm.Beta("p", 1, 1), shape=5)
        pmd.LaplaceMechanism(1.0).potential("privacy", record.sum(), released=3.0)
    return built


RELEASED = released_model()


def result():
    rng = np.random.default_rng(0)

    def group(**shapes):
        return xr.Dataset(
            {
                k: (("chain", "draw", *"k"[: len(s)]), rng.random((2, 8, *s)))
                for k, s in shapes.items()
            }
        )

    stats = group(dapper_accept=())
    posterior = group(p=(), record=(5,), total=())
    return xr.DataTree.from_dict(
        {"posterior": posterior, "prior": posterior, "sample_stats": stats}
    )


RESULT = result()


TABLES = pmd.Release(
    [pmd.Query("sex", [12.0, 18.0], pmd.GaussianMechanism(2.0), "sex", {"sex": ["m", "f"]})]
)
SHARES = xr.DataTree.from_dict(
    {"posterior": xr.Dataset({"p_sex": (("chain", "draw", "sex"), np.full((2, 8, 2), 0.5))})}
)


def study_result():
    settings = {"epsilon": [1.0, 2.0], "replicate": [0, 1]}
    dims = ("epsilon", "replicate")
    p = xr.Dataset(
        {"width": (dims, np.ones((2, 2))), "covered": (dims, np.ones((2, 2)))}, coords=settings
    )
    p["coverage"] = p["covered"].mean("replicate")
    tree = xr.DataTree.from_dict({"p": p})
    tree.attrs["prob"] = 0.9
    return tree


STUDY = study_result()


class Reached(Exception):
    """Raised instead of the expensive part: all arguments were accepted."""


STEP = {"rng": 1, "blocked": True, "compile_kwargs": {}, "initial_point": {}}
BY_MODEL = {"model": MODEL, **STEP}
ADD = {"name": "s", "statistic": pt.vector("statistic", shape=(2,)), "released": [1.0, 2.0]}


def simulated(rng, **cell):
    return {"s": 1}, {"p": 0.5}


VALID = {
    # Steps and sampling
    "DapperStep": lambda: {
        "vars": [MODEL["record"]],
        "track_records": False,
        "allow_full_evaluation": False,
        "max_start_sweeps": 9,
        **BY_MODEL,
    },
    "CountStep": lambda: {
        "vars": [MODEL["total"]],
        "integrate": [MODEL["p"]],
        "max_start_sweeps": 9,
        "tree": False,
        **BY_MODEL,
    },
    "CountTree": lambda: {
        "parent": [-1, 0, 0],
        "released": [9.0, 4.0, np.nan],
        "scale": [0.0, 1.0, 1.0],
        "noise": "discrete_gaussian",
        "prior": "flat",
        "names": ["a", "b", "c"],
    },
    "TableQuery": lambda: {
        "classes": [0, 1],
        "released": [[4.0, 5.0], [np.nan, np.nan]],
        "scale": 1.0,
        "noise": "gaussian",
    },
    "TableTree": lambda: {
        "parent": [-1, 0],
        "queries": {"age": pmd.TableQuery([0, 1], [[4.0, 5.0], [np.nan, np.nan]], 1.0)},
        "prior": np.log([0.5, 0.5]),
        "concentration": [0.5, 0.5],
        "shared": 0,
        "impossible": [True, False],
        "names": ["a", "b"],
    },
    "solve_tree_files": lambda: {
        "source": "nowhere",
        "target": "nowhere",
        "prior": "flat",
        "quantiles": [0.1, 0.9],
        "draws": 2,
        "random_seed": 1,
    },
    "MarginalisedStep": lambda: {
        "vars": [MODEL["p"]],
        "counts": [MODEL["total"]],
        "nuts": {},
        **BY_MODEL,
    },
    "InterweaveStep": lambda: {
        "vars": [MODEL["p"]],
        "records": [MODEL["record"]],
        "moves": 2,
        **BY_MODEL,
    },
    "SizeStep": lambda: {"vars": [SIZED["n"]], **BY_MODEL, "model": SIZED},
    "present": lambda: {"n": pt.lscalar("n"), "size": 3},
    "ConjugateStep": lambda: {"vars": [MODEL["p"]], **BY_MODEL},
    "FunctionStep": lambda: {
        "vars": [MODEL["p"]],
        "draw": lambda rng, point: {"p": 0.5},
        **BY_MODEL,
    },
    "GibbsStep": lambda: {"steps": [Idle([MODEL["p"]], model=MODEL)]},
    "assign_steps": lambda: {"records": [MODEL["record"]], "model": MODEL},
    "sample": lambda: {"draws": 5, "records": [MODEL["record"]], "model": MODEL},
    "tabulate": lambda: {"model": MODEL, "records": [MODEL["record"]]},
    "plan": lambda: {
        "draw": lambda rng: ({"s": 1.0}, {"p": 0.5}),
        "model": lambda release: MODEL,
        "mechanisms": {"laplace": pmd.LaplaceMechanism},
        "epsilons": [1.0, 2.0],
        "replicates": 2,
    },
    "study": lambda: {
        "simulate": simulated,
        "build": lambda released, **cell: MODEL,
        "grid": {"epsilon": [1.0]},
        "seed": 1,
        "executor": 1,
        "progressbar": False,
    },
    "synthetic_data": lambda: {
        "idata": RESULT,
        "model": RELEASED,
        "sets": 2,
        "n": 3,
        "records": [RELEASED["record"]],
        "labels": {"record": ["no", "yes"]},
        "random_seed": 1,
    },
    "microdata.latent_classes": lambda: {"release": TABLES, "n": 30, "classes": 2},
    "microdata.graphical": lambda: {"release": TABLES, "n": 30},
    "microdata.regressions": lambda: {"release": TABLES, "n": 30},
    "microdata.shares": lambda: {"idata": SHARES, "columns": ["sex"]},
    "combine": lambda: {"estimates": [1.0, 2.0, 4.0], "variances": [0.1] * 3},
    "invariant": lambda: {"name": "i", "expression": pt.lvector("x", shape=(2,)), "value": [1, 2]},
    # Budgets
    "PureDP": lambda: {"epsilon": 1.0},
    "ZCDP": lambda: {"rho": 1.0},
    "ApproxDP": lambda: {"epsilon": 1.0, "delta": 1e-6},
    "budget.laplace_scale": lambda: {"budget": BUDGET, "sensitivity": 1.0},
    "budget.laplace_budget": lambda: {"scale": 1.0, "sensitivity": 1.0},
    "budget.discrete_laplace_scale": lambda: {"budget": BUDGET, "sensitivity": 1},
    "budget.discrete_laplace_budget": lambda: {"scale": 1.0, "sensitivity": 1},
    "budget.gaussian_sigma": lambda: {"budget": pmd.ZCDP(1.0), "sensitivity": 1.0},
    "budget.gaussian_budget": lambda: {"sigma": 1.0, "sensitivity": 1.0},
    "budget.compose": lambda: {"budgets": BUDGET},
    "budget.analytic_gaussian_sigma": lambda: {
        "budget": pmd.ApproxDP(1.0, 1e-6),
        "sensitivity": 1.0,
    },
    "budget.analytic_gaussian_budget": lambda: {"sigma": 1.0, "sensitivity": 1.0, "delta": 1e-6},
    # Statistics
    "statistics.counts": lambda: {"record": CATEGORIES, "k": 3},
    "statistics.bounded_counts": lambda: {
        "record": np.array([[0, 1], [2, 1]]),
        "k": 3,
        "at_most": 1,
    },
    "statistics.count_where": lambda: {"condition": np.asarray(CATEGORIES) > 0},
    "statistics.joint_counts": lambda: {
        "columns": [CATEGORIES, CATEGORIES],
        "sizes": [3, 3],
        "neighbours": "replace",
    },
    "statistics.cross_counts": lambda: {"a": CATEGORIES, "b": CATEGORIES, "ka": 3, "kb": 3},
    "statistics.histogram": lambda: {"x": NUMBERS, "edges": [0, 0.5, 1]},
    "statistics.clamped_sum": lambda: {"x": NUMBERS, "lower": 0.0, "upper": 1.0},
    "statistics.clamped_moments": lambda: {"x": NUMBERS, "lower": 0.0, "upper": 1.0, "order": 2},
    "statistics.regression": lambda: {"x": NUMBERS, "y": NUMBERS, "clamp": (0, 1)},
    "statistics.regression_labels": lambda: {"p": 2},
    # Mechanisms
    "LaplaceMechanism": lambda: {"scale": 2.0},
    "GaussianMechanism": lambda: {"sigma": 2.0},
    "DiscreteLaplaceMechanism": lambda: {"scale": 2.0},
    "DiscreteGaussianMechanism": lambda: {"sigma": 2.0},
    "TulapMechanism": lambda: {"b": 0.5, "q": 0.0},
    "IntervalQuantileMechanism": lambda: {"lower": 0, "upper": 3, "alpha": 0.5, "scale": 2.0},
    "KNormMechanism": lambda: {"scale": 2.0, "norm": 2},
    "LInfMechanism": lambda: {"scale": 2.0},
    "NoisyMaxMechanism": lambda: {
        "scale": 2.0,
        "candidates": 2,
        "k": 1,
        "noise": "gumbel",
        "ordered": True,
    },
    "NoisyStats": lambda: {"epsilon": 1.0, "n": 4},
    "QuantileMechanism": lambda: {
        "candidates": [1.0, 2.0],
        "alpha": 0.5,
        "scale": 2.0,
        "noise": "gumbel",
    },
    "RandomizedResponse": lambda: {"keep_probability": 0.75, "categories": 2},
    "TransitionMechanism": lambda: {
        "probabilities": [[0.7, 0.3], [0.4, 0.6]],
        "published": None,
        "differences": [0, 1],
        "repeats": 1,
    },
    "RandomRounding": lambda: {"base": 3, "probabilities": [0.5, 0.5]},
    "CellKey": lambda: {"ptable": [[0, 0, 1.0], [1, 0, 0.4], [1, 1, 0.6]], "repeats": 1},
    "CustomMechanism": lambda: {
        "log_density": lambda released, statistic: -pt.abs(released - statistic),
        "draw": lambda statistic, rng: statistic,
        "whole_numbers": False,
    },
    "published_rows": lambda: {"values": [3.0, 4.0], "rows": np.array([0, 2]), "length": 3},
    # Diagnostics
    # Releases
    "Query": lambda: {
        "name": "n",
        "values": [1.0, 2.0],
        "mechanism": pmd.LaplaceMechanism(2.0),
        "dims": "cell",
        "coords": {"cell": ["a", "b"]},
    },
    "Release": lambda: {
        "queries": [pmd.Query("n", [1.0, 2.0], pmd.LaplaceMechanism(2.0))],
        "budget": BUDGET,
    },
    "read_release": lambda: {
        "frame": {"cell": ["a", "b"], "n": [1.0, 2.0]},
        "values": "n",
        "noise": "laplace",
        "scale": 2.0,
        "dims": "cell",
        "coords": {"cell": ["b", "a"]},
        "budget": BUDGET,
    },
    "releases.read_opendp": lambda: {
        "query": {"column": ["n"], "aggregate": ["Sum"], "distribution": ["Float Laplace"]}
        | {"scale": [2.0]},
        "released": pd.DataFrame({"cell": ["a", "b"], "n": [1.0, 2.0]}),
        "coords": {"cell": ["b", "a"]},
        "budget": BUDGET,
    },
    "releases.opendp_mechanism": lambda: {"measurement": MEASUREMENT},
    "releases.diffprivlib_mechanism": lambda: {"mechanism": DIFFPRIVLIB},
    "releases.smartnoise_mechanism": lambda: {
        "mechanism": SimpleNamespace(
            mechanism=SimpleNamespace(name="laplace"), scale=2.0, threshold=5.0
        ),
        "column": "int",
        "clamp_counts": True,
        "censor_dims": True,
    },
    "releases.tumult_mechanisms": lambda: {
        "noise_info": [{"noise_mechanism": "LAPLACE", "noise_parameter": 2.0}],
        "values": "n",
    },
    "releases.pipeline_dp_mechanisms": lambda: {
        "report": "public partitions\nComputation graph:\n 1. Computed DP count with\n"
        "  Laplace mechanism:  parameter=2.0"
    },
    "releases.noise_of_stddev": lambda: {"noise": "laplace", "stddevs": {"count": 2.0}},
    "releases.read_measurements": lambda: {
        "measurements": [MARGINAL],
        "domain": {"sex": 2},
        "noise": "laplace",
        "coords": {"sex": ["m", "f"]},
        "budget": BUDGET,
    },
    "releases.read_census": lambda: {
        "rows": {
            "geocode": ["01"],
            "query_name": ["sex_dpq"],
            "query_shape": [[2]],
            "value": [[3, 4]],
            "variance": [4.0],
        },
        "levels": {"state": 2},
        "queries": ["sex"],
        "attributes": ["sex"],
        "coords": {"sex": ["m", "f"]},
        "budget": BUDGET,
    },
    "releases.census_totals": lambda: {
        "rows": {
            "geocode": ["01"],
            "query_name": ["total_con"],
            "query_shape": [[1]],
            "value": [[3]],
            "variance": [0.0],
            "sign": ["="],
        },
        "levels": {"state": 2},
        "geocodes": ["0"],
    },
    "releases.census_bounds": lambda: {
        "rows": {
            "geocode": ["01"] * 2,
            "query_name": ["hhgq_total_lb_con", "hhgq_total_ub_con"],
            "query_shape": [[8]] * 2,
            "value": [[0] * 8, [9] * 8],
            "variance": [0.0] * 2,
            "sign": [">=", "<="],
        },
        "levels": {"state": 2},
        "geocodes": ["0"],
    },
    "releases.census_tables": lambda: {
        "release": pmd.Release(
            [
                pmd.Query(
                    "tract: sex",
                    [[3, 4]],
                    pmd.DiscreteGaussianMechanism(2.0),
                    ["tract", "sex"],
                    {"tract": ["01"]},
                )
            ]
        ),
        "attributes": {"sex": 2},
        "exact": {"0": 9},
        "parents": {"01": "0"},
        "bounds": None,
    },
    "diagnostics.acceptance": lambda: {"idata": RESULT, "budget": BUDGET},
    "diagnostics.missing_information": lambda: {
        "idata": RESULT,
        "model": MODEL,
        "records": [MODEL["record"]],
    },
    "diagnostics.record_acceptance": lambda: {"idata": RESULT},
    # Plots
    "plot_record_acceptance": lambda: {"idata": RESULT},
    "plot_analyses": lambda: {"analyses": {"a": RESULT}},
    "plot_study": lambda: {"result": STUDY},
}
"""Arguments of a valid call, by the callable's name."""

OF_SEVERAL = {"budget.compose": lambda budgets: budget.compose(BUDGET, budgets)}
"""What takes any number of arguments by position, with a name for one of them."""

MECHANISMS = {
    "LaplaceMechanism": (pmd.LaplaceMechanism(2.0), BUDGET),
    "GaussianMechanism": (pmd.GaussianMechanism(2.0), pmd.ZCDP(1.0)),
    "DiscreteLaplaceMechanism": (pmd.DiscreteLaplaceMechanism(2.0), BUDGET),
    "DiscreteGaussianMechanism": (pmd.DiscreteGaussianMechanism(2.0), pmd.ZCDP(1.0)),
    "TulapMechanism": (pmd.TulapMechanism(0.5), BUDGET),
    "IntervalQuantileMechanism": (
        pmd.IntervalQuantileMechanism(0, 3, 0.5, 2.0),
        pmd.PureDP(1.0, neighbours="add_remove"),
    ),
    "KNormMechanism": (pmd.KNormMechanism(2.0, 2), BUDGET),
    "LInfMechanism": (pmd.LInfMechanism(2.0), BUDGET),
    "NoisyMaxMechanism": (pmd.NoisyMaxMechanism(2.0, 2), BUDGET),
    "NoisyStats": (pmd.NoisyStats(1.0, 4), BUDGET),
    "QuantileMechanism": (
        pmd.QuantileMechanism([1.0, 2.0], 0.5, 2.0),
        pmd.PureDP(1.0, neighbours="add_remove"),
    ),
    "RandomizedResponse": (pmd.RandomizedResponse(0.75, 2), BUDGET),
    "TransitionMechanism": (pmd.TransitionMechanism(np.eye(8)), None),
    "RandomRounding": (pmd.RandomRounding(2, [0.5]), None),
    "CellKey": (pmd.CellKey([[0, 0, 1.0], [1, 0, 0.5], [1, 1, 0.5]]), None),
    "CustomMechanism": (pmd.CustomMechanism(lambda r, s: -pt.abs(r - s), lambda s, rng: s), None),
}
"""A mechanism of each class, and a budget that it can be calibrated to."""


def of_mechanism(name):
    statistic, released = np.array([1.0, 2.0]), [1.0, 2.0]
    if name == "RandomizedResponse":
        statistic, released = np.array([0, 1]), [0, 1]
    if name == "RandomRounding":
        released = [2.0, 2.0]
    if name == "NoisyMaxMechanism":
        released = [1]
    if name == "IntervalQuantileMechanism":
        statistic, released = np.array([1, 0, 2, 1]), 1.5
    if name == "QuantileMechanism":
        statistic, released = np.array([1, 0, 2, 1, 0]), 2.0
    if name == "NoisyStats":
        statistic = np.array([1.0, 2.0, 0.5, 0.4])
    add = {"name": "s", "statistic": statistic, "released": released}
    return {
        "logp": {"released": np.array(released), "statistic": statistic},
        "potential": add,
        "observe": add,
        "generate": {"name": "s", "statistic": statistic},
        "release": {"statistic": statistic, "random_seed": 1},
        "check_released": {"name": "s", "released": np.array(released)},
        "from_error_bound": {"bound": 3.0, "beta": 0.1},
        "rounded": {"step": 1, "ties": "half up"},
        "clamped": {"lower": 0, "upper": 10},
        "published_if": {"relation": ">=", "threshold": 5.0},
        "times": {"factor": 100.0},
        "in_ranges": {"edges": [1.0]},
        "noisy_range": {"released": np.array(released)},
        "error_bound": {"beta": 0.1} | ({} if "Quantile" in name else {"k": 2}),
        "intercept_scale": {"slope": 1.0},
        "statistic": {"x": CATEGORIES if name == "IntervalQuantileMechanism" else NUMBERS}
        | ({"y": NUMBERS} if name == "NoisyStats" else {}),
        "scores": {"statistic": statistic},
        "privacy_loss": {
            "NoisyStats": {},
            "RandomizedResponse": {},
            "QuantileMechanism": {"neighbours": "replace"},
            "IntervalQuantileMechanism": {"neighbours": "replace"},
        }.get(name, {"sensitivity": 1}),
        "from_function": {"law": lambda true: {true: 1.0}, "largest": 7},
        "calibrate": {
            "NoisyStats": {"budget": BUDGET, "n": 4},
            "RandomizedResponse": {"budget": BUDGET, "categories": 2},
            "NoisyMaxMechanism": {"budget": BUDGET, "sensitivity": 1, "candidates": 2},
            "IntervalQuantileMechanism": {
                "budget": MECHANISMS[name][1],
                "lower": 0,
                "upper": 3,
                "alpha": 0.5,
            },
            "KNormMechanism": {"budget": BUDGET, "sensitivity": 1, "norm": 2},
            "QuantileMechanism": {
                "budget": MECHANISMS[name][1],
                "candidates": [1.0, 2.0],
                "alpha": 0.5,
            },
        }.get(name, {"budget": MECHANISMS[name][1], "sensitivity": 1}),
    }


STOPS = {
    "DapperStep": ["records.step:read_model"],
    "CountStep": ["counts.step:read_counts", "counts.step:read_conditionals"],
    "MarginalisedStep": ["marginalised.step:read_marginalised"],
    "InterweaveStep": ["interweaving.step:read_non_centred"],
    "ConjugateStep": ["conjugacy.step:read_conditionals"],
    "SizeStep": ["sizes.step:read_size"],
    "FunctionStep": ["steps.function:_CheckedDraw"],
    "assign_steps": ["assignment.readings:read_model", "assignment.readings:read_counts"],
    "sample": ["assignment.readings:read_model", "assignment.readings:read_counts"],
    "solve_tree_files": ["counts.trees.streaming:subtree_files"],
    "plan": ["studies.study:CellRunner"],
    "study": ["studies.study:CellRunner"],
    "plot_record_acceptance": ["plots.drawing:figure_options"],
    "plot_analyses": ["plots.drawing:figure_options"],
    "plot_study": ["plots.study:_draw"],
    "synthetic_data": ["synthetic.data:_new_people"],
    "diagnostics.record_acceptance": ["after diagnostics.record_acceptance:group"],
    "diagnostics.missing_information": ["diagnostics.missing_information:assign_parameter_steps"],
}
"""What a call would go on to at some cost, by the callable's name: it isn't done."""
