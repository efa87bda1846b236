"""A model of a table and of records, made once for each file."""

import pytest

from tests.assignment.models_of_people import with_table_and_records


@pytest.fixture(scope="module")
def table_and_records():
    return with_table_and_records()
