"""The local model: every row is made private by itself, before anybody collects it."""
