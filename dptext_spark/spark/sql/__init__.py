"""A model as a function of SQL: what a call of it does, what its registration costs, and what one session has."""
