"""Mechanism design: outcomes that people with secrets choose together, and that reward the truth (section 10)."""
