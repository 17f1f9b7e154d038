"""Total cost of all releases of an input: entries of the budget ledger in, figures and their sentences out.

Sequential composition: ε and δ of releases with independent draws add up. The same draws of the same input reveal nothing new,
whatever the run is called. Records that are new to the input add nothing for any other record (parallel composition). If none is
certain, the release counts: a figure may be too large, never too small.
"""
