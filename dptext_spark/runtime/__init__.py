"""The package's environment: compiled loops, folders, archives, threads and processors; and the display of values."""
