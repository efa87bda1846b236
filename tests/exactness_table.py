"""Run all tests of exactness on all samplers, and write docs/evidence/exactness.md.

    python -m tests.exactness_table          20 minutes on two cores
    python -m tests.exactness_table --short  some minutes, with less power

Ends with status 1 if an exact sampler fails a test, or if a fault passes all of them.
"""

import argparse
import sys
import warnings
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from multiprocessing import get_context
from pathlib import Path

import numpy as np

from pymc_dapper.conjugacy import rules
from tests.statistical import test_conjugate
from tests.statistical.exactness import evidence, verdicts
from tests.statistical.exactness.cases import CASES
from tests.statistical.exactness.faults import FAULTS
from tests.statistical.exactness.reference import REFERENCES, compare

PAGE = Path(__file__).parents[1] / "docs" / "evidence" / "exactness.md"
AGREEMENT = "agreement"
RULES = "rules of ConjugateStep"


def run_case(name, long):
    """Verdicts by sampler and test, for one form."""
    effort = evidence.LONG if long else evidence.SHORT
    return name, {
        sampler: {test: run(name, sampler, effort) for test, run in evidence.TESTS.items()}
        for sampler in (evidence.EXACT, *evidence.faults_of(name))
    }


def run_example(name, long):
    """Verdicts by sampler, for one of the paper's examples."""
    reference = REFERENCES[name]
    exact = reference.sampler()
    twins = {fault: make(exact) for fault, make in FAULTS.items()}
    samplers = {evidence.EXACT: exact} | {k: twin for k, twin in twins.items() if twin is not None}
    return name, {
        sampler: {AGREEMENT: compare(reference, made, np.random.default_rng(9), long)}
        for sampler, made in samplers.items()
    }


def run_rules(name, long):
    """P-values of prior preservation, for each rule as it is and with each fault."""
    found = {}
    for rule in test_conjugate.PAIRS:
        found[rule] = {evidence.EXACT: test_conjugate.invariance(rule)}
        key = test_conjugate.registered()[rule]
        [pair] = rules._pairs[key]
        for fault, change in test_conjugate.FAULTS.items():
            rules._pairs[key] = [
                replace(pair, rule=lambda link, pair=pair, change=change: change(pair.rule(link)))
            ]
            found[rule][fault] = test_conjugate.invariance(rule)
        rules._pairs[key] = [pair]
    return name, found


def run_all(long):
    jobs = [(run_case, name) for name in CASES] + [(run_example, name) for name in REFERENCES]
    jobs += [(run_rules, RULES)]
    # The slowest first.
    jobs.sort(key=lambda job: "compound" not in job[1] and "example" not in job[1])
    with ProcessPoolExecutor(2, get_context("spawn"), initializer=_quiet) as pool:
        futures = [pool.submit(run, name, long) for run, name in jobs]
        found = {}
        for future in futures:
            name, verdict = future.result()
            found[name] = verdict
            print(f"{name}: done", flush=True)
    return found


def _quiet():
    warnings.simplefilter("ignore")


# The page -----------------------------------------------------------------------------------------


def write_page(found, long):
    effort = evidence.LONG if long else evidence.SHORT
    forms = {name: found[name] for name in CASES}
    examples = {name: found[name] for name in REFERENCES}
    n_statistics = sum(
        verdict.size
        for by_sampler in (*forms.values(), *examples.values())
        for verdict in by_sampler[evidence.EXACT].values()
        if verdict is not None
    )
    parts = [
        INTRODUCTION.format(
            false_alarm=_power(verdicts.FALSE_ALARM),
            n_statistics=n_statistics,
            family=_power(verdicts.FALSE_ALARM * n_statistics),
            z_limit=f"{verdicts.Z_LIMIT:.2f}",
            rounding=_power(verdicts.ROUNDING),
            iterations=f"{effort.iterations:,}",
            replicates=effort.replicates,
            ranks=verdicts.DRAWS + 1,
        ),
        SUMMARY,
        _summary(forms, examples),
        FORMS,
    ]
    for name, by_sampler in forms.items():
        parts += [f"### {name[0].upper()}{name[1:]}\n", _table(by_sampler, evidence.TESTS)]
    parts.append(EXAMPLES)
    for name, by_sampler in examples.items():
        parts += [f"### {name[0].upper()}{name[1:]}\n", _table(by_sampler, [AGREEMENT])]
    parts += [CONJUGATE.format(limit=_power(test_conjugate.FALSE_ALARM)), _rules(found[RULES])]
    PAGE.write_text("\n".join(parts), encoding="utf-8")


def _rows(header, rows):
    lines = [header, ["---"] * len(header), *rows]
    return "".join("| " + " | ".join(line) + " |\n" for line in lines)


def _table(by_sampler, tests):
    def cell(test, verdict):
        if verdict is None:
            return ""
        shown = f"{verdict.statistic:.1f}" if verdict.statistic > 2 else _power(verdict.statistic)
        if verdict.where == "second eigenvalue":
            shown = "eigenvalue 1"
        elif test in ("Geweke", AGREEMENT):
            shown = f"{verdict.statistic:.1f}"
        return f"**{shown}**" if verdict.caught else shown

    header = ["sampler", *tests]
    rows = [
        [sampler, *(cell(test, verdict) for test, verdict in of_tests.items())]
        for sampler, of_tests in by_sampler.items()
    ]
    return _rows(header, rows)


def _summary(forms, examples):
    """For each fault and test: on how many of the forms it is caught."""
    header = ["fault", *evidence.TESTS, AGREEMENT]
    rows = []
    for fault in FAULTS:
        row = [fault]
        for test in header[1:]:
            tried = [
                by_sampler[fault][test]
                for by_sampler in (*forms.values(), *examples.values())
                if fault in by_sampler and by_sampler[fault].get(test) is not None
            ]
            caught = sum(verdict.caught for verdict in tried)
            row.append(f"{caught} of {len(tried)}" if tried else "")
        rows.append(row)
    return _rows(header, rows)


def _rules(found):
    faults = [evidence.EXACT, *test_conjugate.FAULTS]
    rows = []
    for rule, p_values in found.items():
        shown = [_power(p_values[fault]) for fault in faults]
        caught = [p_values[fault] < test_conjugate.FALSE_ALARM for fault in faults]
        cells = [f"**{x}**" if c else x for x, c in zip(shown, caught, strict=True)]
        rows.append([rule.replace("_", " "), *cells])
    return _rows(["rule", *(fault.replace("_", " ") for fault in faults)], rows)


def _power(x):
    """A number as people write it."""
    if x == 0:
        return "0"
    if 1e-3 <= abs(x) < 1e4:
        return f"{x:.2g}"
    exponent = int(np.floor(np.log10(abs(x))))
    mantissa = round(x / 10.0**exponent)
    if mantissa == 10:
        mantissa, exponent = 1, exponent + 1
    return f"1e{exponent}" if mantissa == 1 else f"{mantissa}e{exponent}"


INTRODUCTION = """\
# Evidence that the samplers are exact

`python -m tests.exactness_table` writes this page.

A sampler that is slightly wrong looks like one that works. So each form of model that the steps
distinguish has a small model of its own. Its compiled steps go through three tests. Then faults are
put into them, one at a time, and the tests have to find these. Moves by `InterweaveStep` are left
out, except in the model named after it, since they would hide faults of other steps. So ready-made
models have 3 people here, drawn one by one. The steps that users get for more people, linked tables
and moved boundaries, go through Geweke's test in `tests/statistical/test_microdata_steps.py`.

**Matrix.** If records have few values, all their states can be enumerated. The transition matrix of
a sweep is computed from the compiled functions: the law of proposals by solving for the uniform
numbers at which a proposal changes, acceptance by solving for the uniform number at which the
outcome changes. The matrix must keep the exact conditional posterior, which is enumerated without
any structure. The table shows the largest change of any probability; the limit is {rounding}, for
rounding. The matrix must keep no other distribution. "Eigenvalue 1" means that it keeps another.

**Geweke's joint distribution test** (Geweke 2004). Parameters, records and released values are
drawn from the model by NumPy. They are also drawn in turn, {iterations} times: released values
given the records, then records and parameters given the released values, by the sampler. Means,
squares and products of all of them must agree, after the records' step and after all steps. The
table shows the largest difference in Monte Carlo standard errors; the limit is {z_limit}.

**Simulation-based calibration** (Talts, Betancourt, Simpson, Vehtari and Gelman 2018).
{replicates} times, parameters and records are drawn, and values released. The rank of the truth
among draws of the sampler must be uniform over {ranks} ranks. Draws are thinned to half of their
effective sample size. Ranks are taken of parameters, of records, and of both times the distance of
the release from its mean. The table shows the smallest p-value of the chi-squared tests; the limit
is {false_alarm}.

A statistic of an exact sampler is beyond its limit with probability {false_alarm} (those of the
matrix never are). Exact samplers have {n_statistics} statistics on this page, so the probability of
any false alarm is at most {family}. Seeds are fixed. Bold numbers are beyond their limit: the fault
was caught.
"""

SUMMARY = """\
## Which test catches which fault

On how many of the models that can have a fault it was caught:
"""

FORMS = """\

| fault | what is wrong |
| --- | --- |
| stale cached sum | the sum isn't updated when a proposal was accepted |
| one record skipped | the last record keeps its value |
| proposal from the wrong theta | it comes from the parameters of the iteration before |
| t_i at the old theta | contributions come from it, in the model whose t_i depend on theta |
| missing Jacobian, records | the ratio of their prior stays in the decision |
| missing Jacobian, NUTS | that of a logarithm is left out of the density |
| theta given the old records | those before the sweep; the matrix is right and can't show it |

## Form by form
"""

EXAMPLES = """\
## The paper's examples

The largest difference of means and mean squares from an answer found another way, in Monte Carlo
standard errors of both: independent draws in example 1, an exact mixture in example 2, NUTS on all
records at once in example 3. One skipped record of many hardly changes a posterior; the tests above
find it.
"""

CONJUGATE = """\
## Rules of ConjugateStep

Prior preservation: draw theta from its prior, data given theta, and theta' from the conditional
given the data. Then theta' has the prior's law. The table shows p-values of two-sample
Kolmogorov-Smirnov tests on 60,000 replicates with large data; the limit is {limit}. Normal means
are tested in `tests/statistical/test_conjugate.py`, too.
"""


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--short", action="store_true", help="as short as in `make test-all`")
    long = not parser.parse_args().short
    found = run_all(long)
    write_page(found, long)
    wrong = [
        f"{name}: an exact sampler fails {test}"
        for name in (*CASES, *REFERENCES)
        for test, verdict in found[name][evidence.EXACT].items()
        if verdict is not None and verdict.caught
    ]
    wrong += [
        f"{fault} passes all tests"
        for fault in FAULTS
        if not any(
            verdict is not None and verdict.caught
            for name in (*CASES, *REFERENCES)
            for verdict in found[name].get(fault, {}).values()
        )
    ]
    print("\n".join(wrong) or f"All is well: {PAGE}")
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
