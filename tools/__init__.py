"""What makes packaged data; for development only, and no part of the wheel."""
