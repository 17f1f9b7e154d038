"""The audit of a written table, on Spark."""
