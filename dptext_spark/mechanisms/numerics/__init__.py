"""Numerical functions with the same bits on every processor."""
