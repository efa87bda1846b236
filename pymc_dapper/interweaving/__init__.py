"""Parameters moved together with the records, whose noise is held fixed."""
