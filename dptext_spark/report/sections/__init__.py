"""The sections of the offline page, each made from plain values."""
