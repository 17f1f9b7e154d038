"""The commands of `dptext`, one file each.

What a command needs is imported when it runs: `--help` stays quick, and only what works on tables needs Spark.
"""
