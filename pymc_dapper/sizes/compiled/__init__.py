"""The compiled draw of a number of records."""
