"""Compiled models: compile, store, open, apply, certify and preview them."""
