"""What is said of single rows: which of them count, and keys that are made of their dates."""
