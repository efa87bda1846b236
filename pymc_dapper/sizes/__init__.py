"""Unknown numbers of records: drawn given all records that there is room for."""
