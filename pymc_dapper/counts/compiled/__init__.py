"""From a reading of counts to a compiled sweep."""
