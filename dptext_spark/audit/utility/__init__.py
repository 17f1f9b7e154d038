"""Utility: what a replaced text is still good for."""
