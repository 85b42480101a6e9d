"""Selections of candidates by their scores."""
