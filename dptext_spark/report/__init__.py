"""What people read: summaries, plans and the endings of commands, from plain numbers."""
