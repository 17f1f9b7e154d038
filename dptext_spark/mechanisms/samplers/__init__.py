"""Building blocks of mechanisms: alias rows of short laws, laws over the whole lexicon, lists and noise.

A kernel is written once; the mechanisms of the papers differ in a line or two.
"""
