"""From a reading of records to a compiled sweep."""
