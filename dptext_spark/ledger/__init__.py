"""What the releases of one input cost together: entries of the budget ledger in, figures and their sentences out.

Sequential composition: what is told about one word by releases with draws of their own adds up, ε and δ each. The same draws of
the same input tell nothing new, whatever the run is called. Records that were never in the input before add nothing for any other
record (parallel composition). Where it is not known which of these holds, the release counts: a figure may be too large, and is
never too small.
"""
