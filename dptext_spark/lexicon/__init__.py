"""Public knowledge: words and their geometry. Nothing in this room depends on the private text."""
