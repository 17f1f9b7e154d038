"""A small transformer encoder (extra `[encoder]`): attention that words receive, vectors, words behind a mask, names."""
