import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import parquet

from pymc_dapper.releases.frames import column, columns_of

COLUMNS = {"code": ["007", "010"], "n": [3, 4], "x": [1.5, None]}


def test_columns_of_all_kinds_of_table(tmp_path):
    frame = pd.DataFrame(COLUMNS)
    path = tmp_path / "t.parquet"
    parquet.write_table(pa.table(COLUMNS), path)
    nullable = frame.convert_dtypes()
    tables = (COLUMNS, frame, nullable, pa.table(COLUMNS), path, str(path), frame.set_index("code"))
    for table in tables:
        found = columns_of(table)
        assert {key: found[key] for key in ("code", "n")} == {k: COLUMNS[k] for k in ("code", "n")}
        assert found["x"][0] == 1.5
        assert found["x"][1] is None or found["x"][1] != found["x"][1]


def test_a_csv_file_keeps_its_labels(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("code,year,land,n,x\n007,2020,NA,3,1.5\n010,2021,FR,4,\n")
    found = columns_of(path, text_columns=["code", "year", "land"])
    assert found == {
        "code": ["007", "010"],
        "year": [2020, 2021],
        "land": ["NA", "FR"],
        "n": [3, 4],
        "x": [1.5, None],
    }
    # A column that isn't of labels may hold words, which whoever reads numbers refuses.
    assert columns_of(path)["land"] == [None, "FR"]


@pytest.mark.parametrize(
    ("frame", "error", "message"),
    [
        (3, TypeError, "frame must be the path"),
        ({}, ValueError, "empty"),
        ({"a": []}, ValueError, "empty"),
        ({"a": [1], "b": [1, 2]}, ValueError, "one length"),
        (pd.DataFrame([[1, 2]], columns=["a", "a"]), ValueError, "different names"),
        ("", ValueError, "ends in .csv"),
    ],
)
def test_what_is_no_table_is_refused(frame, error, message):
    with pytest.raises(error, match=message):
        columns_of(frame)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("t.csv", b"", "t.csv can't be read"),
        ("t.csv", b"g,n\nm\xe4nner,3\n", "t.csv can't be read: .*utf-8"),
        ("t.csv", b"g,n\nm,3,4\n", "t.csv can't be read: .*Expected 2 fields"),
        ("t.csv", b"g;n\nm;3,5\n", "saw 2. In a CSV file, a comma .*, decimal=','"),
        ("t.csv", b"g;n\nm;3\n", "its one column is 'g;n'. In a CSV file, a comma .*sep=';'"),
        ("t.csv", b"g\tn\nm\t3\n", "its one column is 'g.*n'. In a CSV file"),
        ("t.csv", b"g,n,n\nm,3,4\n", "different names"),
        ("t.csv", b"g,n\n", "empty"),
        ("t.parquet", b"g,n\n", "t.parquet can't be read(?!.*CSV)"),
    ],
)
def test_files_that_are_broken_are_refused(tmp_path, name, content, message):
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(ValueError, match=message):
        columns_of(path)


def test_what_looks_like_a_number_or_a_label_only(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("\ufeffg,n\nm,1_000\n,4\n", "utf-8")
    assert columns_of(path, text_columns=["g"]) == {"g": ["m", None], "n": ["1_000", 4]}


def test_a_column_that_is_not_there_is_told():
    with pytest.raises(ValueError, match="values: there is no column 'z', but code, n, x"):
        column(COLUMNS, "z", "values")
