"""Compiled models: what is applied, kept, opened, certified and previewed."""
