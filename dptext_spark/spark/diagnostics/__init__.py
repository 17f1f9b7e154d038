"""`dptext doctor`, on Spark."""
