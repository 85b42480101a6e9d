"""Exact numbers: amounts of privacy in whole units, balls that hold real numbers, and their rounding."""
