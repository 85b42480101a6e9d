"""Privacy accounting: exact amounts, and later the accountants."""
