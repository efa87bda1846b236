import math
from types import SimpleNamespace

import pytest

import pymc_dapper as pmd
from pymc_dapper.releases import noise_of_stddev, pipeline_dp_mechanisms

# As PipelineDP's report generator writes it.
REPORT = """\
DPEngine method: aggregate
AggregateParams:
 metrics=['COUNT', 'SUM']
 noise_kind=laplace
 Partition selection: public partitions
Computation graph:
 1. Per-partition contribution bounding: for each privacy_id and each partition, randomly select 1.
 2. Computed DP count with
     Laplace mechanism:  parameter=4.0  eps=0.5  l1_sensitivity=2.0
 3. Computed DP sum with
     Gaussian mechanism:  parameter=12.5  l2_sensitivity=5.0"""

OTHERS = """
 4. DP mean computation:
    a. Computed 'normalized_sum' = sum of (value - 2.5)
    b. Applied to 'count' Laplace mechanism:  parameter=4.0  eps=0.5  l1_sensitivity=2.0
 5. Computed variance with (eps=1 delta=0)"""


def test_the_noise_of_each_metric_is_read():
    for report in (REPORT, SimpleNamespace(text=lambda: REPORT)):
        found = pipeline_dp_mechanisms(report)
        assert list(found) == ["count", "sum"]
        assert repr(found["count"]) == repr(pmd.LaplaceMechanism(4.0))
        assert repr(found["sum"]) == repr(pmd.GaussianMechanism(12.5))
    assert list(pipeline_dp_mechanisms(REPORT + OTHERS)) == ["count", "sum"]


@pytest.mark.parametrize(
    ("report", "error", "message"),
    [
        (REPORT.replace("public", "private"), ValueError, "weren't public"),
        (REPORT[: REPORT.index("\n 2.")] + OTHERS, ValueError, "single numbers for 'COUNT', 'SUM'"),
        (REPORT.replace("parameter=4.0", "parameter=-4.0"), ValueError, "parameter of 'count'"),
        (REPORT.replace("parameter=4.0", "parameter=nan"), ValueError, "parameter of 'count'"),
        (REPORT.replace("DP sum", "DP count"), ValueError, "two noises of 'count'"),
        ("public partitions\nComputation graph:", ValueError, "any metric"),
        ("", TypeError, "must be an explanation report"),
    ],
)
def test_wrong_or_incomplete_reports_are_refused(report, error, message):
    with pytest.raises(error, match=message):
        pipeline_dp_mechanisms(report)


def test_standard_deviations():
    found = noise_of_stddev("laplace", {"count": 2 * math.sqrt(2)})
    assert found["count"].scale == pytest.approx(2.0)
    assert noise_of_stddev("gaussian", {"sum": 3.0})["sum"].sigma == 3.0
    with pytest.raises(ValueError, match="stddevs: 'sum'"):
        noise_of_stddev("gaussian", {"sum": 0.0})
    with pytest.raises(ValueError, match="noise must be"):
        noise_of_stddev("uniform", {"sum": 1.0})
