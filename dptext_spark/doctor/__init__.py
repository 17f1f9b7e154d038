"""What `dptext doctor` makes of what it saw, from plain values."""
