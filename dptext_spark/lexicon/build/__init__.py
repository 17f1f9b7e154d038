"""How the packaged tables are made; nothing here is imported at run time."""
