"""Identifiers: how they are found in texts, and what is written in their place."""
