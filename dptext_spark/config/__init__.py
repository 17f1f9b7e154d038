"""What the settings are made of: the YAML file, sections, values, places, and how problems are said."""
