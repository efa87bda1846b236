"""What Tumult Analytics tells of its noise, written to `tests/releases/data/tumult.json`.

Its releases can't be made and read in one process, since it needs a Python and a NumPy that are
older than the project's, and Java. With version 0.21.0, in an environment of Python 3.12 and a
folder in which Spark may leave files:

    python -m pip install tmlt-analytics
    PYSPARK_PYTHON=python python .../tests/libraries/record_tumult.py
"""

import json
from importlib.metadata import version
from pathlib import Path

import pandas as pd
from pyspark.sql import SparkSession
from tmlt.analytics import (
    AddOneRow,
    KeySet,
    PureDPBudget,
    QueryBuilder,
    RhoZCDPBudget,
    Session,
)

N_GROUPS = 300
PEOPLE = {"group": [0] * 30 + [1] * 20, "age": [40] * 50, "amount": [1.5] * 50}


def told(noise_info):
    """Tumult's noise information as JSON."""
    return [
        {
            "noise_mechanism": each["noise_mechanism"].name,
            "noise_parameter": each["noise_parameter"],
        }
        for each in noise_info
    ]


def main():
    spark = (
        SparkSession.builder.master("local[1]")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.shuffle.partitions", "1")
        .getOrCreate()
    )
    people = spark.createDataFrame(pd.DataFrame(PEOPLE))
    grouped = QueryBuilder("people").groupby(KeySet.from_dict({"group": list(range(N_GROUPS))}))
    queries = {
        "count": (grouped.count(), [30, 20]),
        "sum of whole numbers": (grouped.sum("age", 0, 100), [1200, 800]),
        "sum": (grouped.sum("amount", 0, 2), [45.0, 30.0]),
        "mean": (grouped.average("age", 0, 100), None),
        "quantile": (grouped.quantile("age", 0.5, 0, 100), None),
    }
    found = []
    for budget, spent in (
        (PureDPBudget(9), PureDPBudget(0.1)),
        (RhoZCDPBudget(9), RhoZCDPBudget(0.1)),
    ):
        session = Session.from_dataframe(budget, "people", people, protected_change=AddOneRow())
        for name, (query, true) in queries.items():
            record = {"query": name, "budget": repr(spent), "true": true}
            record["noise_info"] = told(session._noise_info(query, spent))
            if true is not None:
                frame = session.evaluate(query, spent).toPandas()
                [column] = [each for each in frame.columns if each != "group"]
                record["released"] = frame.set_index("group")[column].sort_index().tolist()
            found.append(record)
    written = {"library": "tmlt-analytics", "version": version("tmlt-analytics"), "found": found}
    path = Path(__file__).parents[1] / "releases" / "data" / "tumult.json"
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(written, indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    main()
