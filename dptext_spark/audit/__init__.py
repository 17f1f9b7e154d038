"""Audits: pure functions from numbers to numbers and sentences."""
