"""Answers from a file of noisy numbers: ``python -m pymc_dapper cases.csv ...``."""

import sys

from pymc_dapper.answers.command_line import main

if __name__ == "__main__":
    sys.exit(main())
