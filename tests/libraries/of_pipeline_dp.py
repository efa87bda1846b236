import re

import numpy as np
import pipeline_dp
import pytest
from pipeline_dp.report_generator import ExplainComputationReport
from scipy import stats

import pymc_dapper as pmd
from pymc_dapper.releases import noise_of_stddev, pipeline_dp_mechanisms
from tests.libraries.compared import RECORDS, assert_posterior, same_law

ILL = [(person, "ill", 1.0) for person in np.flatnonzero(RECORDS)]
COUNTS = [pipeline_dp.Metrics.PRIVACY_ID_COUNT, pipeline_dp.Metrics.COUNT, pipeline_dp.Metrics.SUM]


def released(metrics, noise, partitions=("ill",), epsilon=1.0):
    """Metrics of each partition, and the report."""
    accountant = pipeline_dp.NaiveBudgetAccountant(total_epsilon=epsilon, total_delta=1e-3)
    report = ExplainComputationReport()
    result = pipeline_dp.DPEngine(accountant, pipeline_dp.LocalBackend()).aggregate(
        ILL,
        pipeline_dp.AggregateParams(
            noise_kind=noise,
            metrics=metrics,
            max_partitions_contributed=1,
            max_contributions_per_partition=1,
            min_value=0,
            max_value=5,
            output_noise_stddev=True,
        ),
        pipeline_dp.DataExtractors(
            privacy_id_extractor=lambda row: row[0],
            partition_extractor=lambda row: row[1],
            value_extractor=lambda row: row[2],
        ),
        public_partitions=partitions,
        out_explain_computation_report=report,
    )
    accountant.compute_budgets()
    return {partition: each._asdict() for partition, each in result}, report


@pytest.mark.parametrize("kind", ["laplace", "gaussian"])
def test_reports_and_standard_deviations_tell_of_the_noise_that_was_added(kind):
    noise = pipeline_dp.NoiseKind[kind.upper()]
    partitions = ["ill", *map(str, range(999))]
    found, report = released(COUNTS, noise, partitions)
    mechanisms = pipeline_dp_mechanisms(report)
    assert set(mechanisms) == {"privacy_id_count", "count", "sum"}
    for metric, mechanism in mechanisms.items():
        noisy = [found[partition][metric] for partition in partitions[1:]]
        assert same_law(noisy, mechanism, 0) > 1e-4
        assert same_law(np.multiply(noisy, 1.5), mechanism, 0) < 1e-4
        told = noise_of_stddev(kind, {metric: found["ill"][f"{metric}_noise_stddev"]})[metric]
        assert repr(told) == repr(mechanism)


@pytest.mark.parametrize("name", ["MEAN", "VARIANCE", "PERCENTILE(50)"])
def test_what_has_no_noise_of_one_number_is_refused_by_name(name):
    metrics = pipeline_dp.Metrics
    metric = metrics.PERCENTILE(50) if "(" in name else getattr(metrics, name)
    _, report = released([metric], pipeline_dp.NoiseKind.LAPLACE)
    with pytest.raises(ValueError, match=re.escape(f"for '{name}'")):
        pipeline_dp_mechanisms(report)


def test_private_partitions_are_refused():
    _, report = released(COUNTS, pipeline_dp.NoiseKind.LAPLACE, partitions=None)
    with pytest.raises(ValueError, match="weren't public"):
        pipeline_dp_mechanisms(report)


def test_a_release_becomes_its_posterior():
    metrics = [pipeline_dp.Metrics.PRIVACY_ID_COUNT]
    found, report = released(metrics, pipeline_dp.NoiseKind.LAPLACE, epsilon=0.3)
    frame = {"state": ["ill"], "privacy_id_count": [found["ill"]["privacy_id_count"]]}
    release = pmd.read_release(
        frame, values="privacy_id_count", noise=pipeline_dp_mechanisms(report), dims="state"
    )
    value = float(release["privacy_id_count"].values[0])
    query = pmd.Query("released", value, release["privacy_id_count"].mechanism)
    assert_posterior(
        query,
        lambda counts, scale: stats.laplace(counts, scale).pdf(value),
        1 / 0.3,
    )
