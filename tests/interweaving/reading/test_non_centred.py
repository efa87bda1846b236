"""A model with noise in the place of records: attributes and descriptions."""

from tests.interweaving.linked import LINKED, linked_model, read


def test_variables_have_the_names_that_the_model_gives_them():
    reading = read(linked_model(), *LINKED)
    assert [x.name for x in reading.parameters] == ["theta_log__", "upper_interval__", "slope"]
    assert reading.names(reading.parameters) == ["theta", "upper", "slope"]
    assert reading.names(reading.records) == ["u", "x", "y"]
