"""Quantiles that Tumult Core draws, written to `tests/releases/data/tumult_quantiles.json`.

With version 0.20.0, in an environment of Python 3.12; neither Java nor Spark is started:

    python -m pip install tmlt.core
    python .../tests/libraries/record_tumult_quantiles.py
"""

import json
from importlib.metadata import version
from pathlib import Path

import pandas as pd
from tmlt.core.domains.numpy_domains import NumpyIntegerDomain
from tmlt.core.domains.pandas_domains import PandasSeriesDomain
from tmlt.core.measurements.pandas_measurements.series import NoisyQuantile
from tmlt.core.measures import PureDP

RECORDS = [3, 10, 10, 17, 24, 30, 41, 55, 0, 80]
N_RELEASES, LOWER, UPPER, EPSILON = 400, 5, 60, 1


def main():
    found = []
    for quantile in (0.5, 0.9):
        domain = PandasSeriesDomain(NumpyIntegerDomain())
        draw = NoisyQuantile(domain, PureDP(), quantile, LOWER, UPPER, EPSILON)
        found.append(
            {
                "quantile": quantile,
                "epsilon": EPSILON,
                "lower": LOWER,
                "upper": UPPER,
                "records": RECORDS,
                "released": [round(draw(pd.Series(RECORDS)), 3) for _ in range(N_RELEASES)],
            }
        )
    written = {"library": "tmlt.core", "version": version("tmlt.core"), "found": found}
    path = Path(__file__).parents[1] / "releases" / "data" / "tumult_quantiles.json"
    path.write_text(json.dumps(written) + "\n", "utf-8")


if __name__ == "__main__":
    main()
