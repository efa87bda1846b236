"""The command line: a file of noisy numbers in, a table of intervals out."""

import argparse
import sys
from collections.abc import Sequence

from pymc_dapper.answers.answer import Answer
from pymc_dapper.releases.tables import NOISE, read_release

DESCRIPTION = """Intervals of the true values behind a table of noisy ones.

The scale is that of Laplace noise, or the standard deviation of Gaussian noise: a number, or the
column that has it."""
EXAMPLE = (
    "example: python -m pymc_dapper cases.csv --values cases --noise laplace --scale 5 "
    "--dims district --csv intervals.csv"
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line.

    Parameters
    ----------
    arguments : sequence of str, optional
        What comes after the program's name; those of the process if not given.

    Returns
    -------
    int
        0, or 1 if there is no answer: why is written to the standard error.
    """
    parser = _parser()
    given = parser.parse_args(arguments)
    try:
        release = read_release(
            given.file,
            values=given.values,
            noise=given.noise,
            scale=_number(given.scale),
            dims=given.dims or None,
        )
        found = release.posterior(
            prior=tuple(given.between) if given.between else given.prior,
            total=given.total,
            draws=given.draws,
            random_seed=given.seed,
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
    add("--noise", required=True, choices=list(NOISE), help="the law of the noise")
    add("--scale", required=True, help="its scale: a number or a column")
    add("--dims", nargs="+", default=[], metavar="COLUMN", help="columns of labels")
    add("--prior", choices=("flat", "smooth"), default="flat", help="of counts (default: flat)")
    add(
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


def _number(text: str) -> float | str:
    try:
        return float(text)
    except ValueError:
        return text
