"""The disclosure statement of a run."""
