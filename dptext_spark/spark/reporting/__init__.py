"""The report of a run, from the tables that the run wrote."""
