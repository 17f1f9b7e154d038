"""Importance of words: providers that measure it, and the selection of the words that are drawn."""
