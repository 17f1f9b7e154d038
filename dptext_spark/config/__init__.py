"""The settings: YAML file, sections, values, places, and messages on problems."""
