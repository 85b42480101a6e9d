"""Synthesis over cells that are too many to hold: marginals are measured, and a tree of small tables fitted."""
