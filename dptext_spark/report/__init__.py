"""Texts for people: summaries, plans and the endings of commands, from plain numbers."""
