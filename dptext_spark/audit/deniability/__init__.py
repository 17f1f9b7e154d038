"""Plausible deniability of words, and the search for the ε that meets a requirement."""
