"""What the package runs in: compiled loops, folders, archives, threads and processors; and how values show themselves."""
