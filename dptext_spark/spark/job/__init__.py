"""A run, from its checks to its account."""
