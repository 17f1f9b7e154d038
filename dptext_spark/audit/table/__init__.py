"""The audit of a written table against its source."""
