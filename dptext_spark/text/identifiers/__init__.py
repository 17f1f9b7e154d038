"""Find identifiers in texts and replace them."""
