"""Run keys and keyed randomness."""
