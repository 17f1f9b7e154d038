"""Mechanisms side by side, at equal success of an attack."""
