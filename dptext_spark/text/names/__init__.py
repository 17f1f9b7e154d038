"""Names in texts: of lists, and those that a search by public lists finds."""
