"""Attacks on replaced words and on whole texts, each against its baseline."""
