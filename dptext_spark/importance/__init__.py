"""Which words of a text matter: providers of importance, and the choice of the words that are drawn (MECHANISMS §11)."""
