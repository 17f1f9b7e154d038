"""Readers of word vectors, by the form of the file."""
