"""Small private summaries of huge data, which many places make of their own rows and which merge."""
