"""The demo: sample tickets and the job on them."""
