"""The command line: reads a file of noisy numbers, prints a table of intervals."""

import argparse
import sys
from collections.abc import Sequence
from typing import Any

from pymc_dapper.answers.answer import Answer
from pymc_dapper.checks import whole_number
from pymc_dapper.mechanisms import Mechanism, RandomRounding
from pymc_dapper.releases.noise import NOISE
from pymc_dapper.releases.tables import read_release

DESCRIPTION = """Intervals of the true values behind a table of noisy ones.

The scale is that of Laplace noise, or the standard deviation of Gaussian noise: a number, or the
name of a column. If noisy values were processed before publication, say so by --rounded, --clamped,
--published-from and --published-above, in the order of processing."""
EXAMPLE = (
    "example: python -m pymc_dapper cases.csv --values cases --noise laplace --scale 5 "
    "--dims district --csv intervals.csv"
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line.

    Parameters
    ----------
    arguments : sequence of str, optional
        The arguments; by default those of the process.

    Returns
    -------
    int
        0, or 1 if there is no answer; the reason goes to standard error.
    """
    parser = _parser()
    given = parser.parse_args(arguments)
    try:
        noise = _noise(given)
        release = read_release(
            given.file,
            values=given.values,
            noise=noise,
            scale=None if isinstance(noise, Mechanism) else given.scale,
            dims=given.dims or None,
        )
        found = release.posterior(
            prior=_prior(given), total=given.total, draws=given.draws, random_seed=given.seed
        )
        answers = {release.names[0]: found} if isinstance(found, Answer) else found
        if given.csv is not None and len(answers) > 1:
            raise ValueError("--csv is for one column of values: take one by --values")
        for k, (name, answer) in enumerate(answers.items()):
            title = f"{name}\n" if len(answers) > 1 else ""
            print("\n" * bool(k) + title + repr(answer.summary(given.probability)))
            if given.csv is not None:
                answer.to_csv(given.csv, given.probability)
    except (OSError, TypeError, ValueError, ImportError) as error:
        print(f"{parser.prog}: {error}", file=sys.stderr)
        return 1
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m pymc_dapper",
        description=DESCRIPTION,
        epilog=EXAMPLE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("file", help="a CSV or Parquet file")
    add("--values", required=True, nargs="+", metavar="COLUMN", help="columns of noisy values")
    noise = parser.add_mutually_exclusive_group(required=True)
    noise.add_argument("--noise", choices=list(NOISE), help="the law of the noise")
    noise.add_argument("--random-rounding", type=int, metavar="BASE", help="in its place")
    add("--scale", type=_number_or_text, help="the noise's scale: a number or a column")
    parser.set_defaults(rules=[])
    for name, options in RULES.items():
        add(f"--{name.replace('_', '-')}", dest=name, action=_Rule, **options)
    add("--dims", nargs="+", default=[], metavar="COLUMN", help="columns of labels")
    prior = parser.add_mutually_exclusive_group()
    prior.add_argument(
        "--prior", choices=("flat", "smooth"), default="flat", help="of counts (default: flat)"
    )
    prior.add_argument("--at-most", type=int, metavar="N", help="counts, flat on 0, ..., N")
    prior.add_argument(
        "--between",
        nargs=2,
        type=float,
        metavar=("LOWER", "UPPER"),
        help="the values are real numbers between these, such as sums, and not counts",
    )
    add("--total", type=int, help="the sum of all true counts, if it is known")
    add("--probability", type=float, default=0.9, help="of intervals (default: 0.9)")
    add("--draws", type=int, default=4000, help="number of draws (default: 4000)")
    add("--seed", type=int, help="the same seed gives the same table")
    add("--csv", metavar="FILE", help="write labels, medians, lower and upper ends to this file")
    return parser


class _Rule(argparse.Action):
    """Keeps rules in the order of the command line."""

    def __call__(self, parser: Any, namespace: Any, values: Any, option_string: Any = None) -> None:
        namespace.rules = [*namespace.rules, (self.dest, values)]


def _prior(given: argparse.Namespace) -> Any:
    if given.at_most is not None:
        return range(whole_number(given.at_most, "--at-most", at_least=0) + 1)
    return tuple(given.between) if given.between else given.prior


def _noise(given: argparse.Namespace) -> str | Mechanism:
    """Return the name of the noise, or a mechanism with its rules."""
    mechanism: Any
    if given.random_rounding is not None:
        mechanism = RandomRounding(given.random_rounding)
    elif not given.rules:
        return given.noise
    elif isinstance(given.scale, float):
        mechanism = NOISE[given.noise](given.scale)
    else:
        raise ValueError("--scale must be a number where noisy values were rounded or suppressed")
    for name, value in given.rules:
        match name:
            case "rounded":
                mechanism = mechanism.rounded(value)
            case "clamped":
                mechanism = mechanism.clamped(*value)
            case _:
                mechanism = mechanism.published_if(">=" if name.endswith("from") else ">", value)
    return mechanism


def _number_or_text(text: str) -> float | str:
    try:
        return float(text)
    except ValueError:
        return text


def _limit(text: str) -> float | None:
    return None if text == "none" else float(text)


RULES: dict[str, dict[str, Any]] = {
    "rounded": {"type": float, "metavar": "STEP", "help": "to multiples of STEP"},
    "clamped": {
        "nargs": 2,
        "type": _limit,
        "metavar": ("LOWER", "UPPER"),
        "help": "moved to these limits, of which one may be none",
    },
    "published_from": {"type": float, "metavar": "LEAST", "help": "suppressed if below"},
    "published_above": {"type": float, "metavar": "LIMIT", "help": "suppressed if not above"},
}
