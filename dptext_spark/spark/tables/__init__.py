"""Tables, their columns and their rows."""
