"""Statistics of records are found again among others."""

from pymc.stats.convergence import SamplerWarning, WarningType, log_warning_stats

from pymc_dapper.steps.stats import (
    RECORD_STAT,
    WARNING_STAT,
    each_warning_once,
    record_stat,
    record_stats,
    warning_of,
)


def test_statistics_of_records_are_found_in_the_models_order():
    names = [record_stat(12, "b"), "dapper_accept", record_stat(3, "z_1"), RECORD_STAT, 7]
    assert record_stats(names) == [f"{RECORD_STAT}_3_z_1", f"{RECORD_STAT}_12_b"]


def test_what_a_chain_tells_is_a_warning_of_convergence():
    told = warning_of("'x' never moved")
    assert isinstance(told, SamplerWarning)
    assert (told.kind, told.message, told.level) == (
        WarningType.CONVERGENCE,
        "'x' never moved",
        "warn",
    )


def test_what_several_chains_tell_is_logged_once(caplog):
    def tell(*messages):
        for message in messages:
            log_warning_stats([{WARNING_STAT: warning_of(message)}])

    with each_warning_once():
        tell("the end is near", "'x' never moved", "the end is near")
    tell("the end is near")
    assert caplog.messages == ["the end is near", "'x' never moved", "the end is near"]
