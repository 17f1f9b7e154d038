"""The demo: sample tickets and the job on them."""

TICKETS = 4_000  # packaged ones
