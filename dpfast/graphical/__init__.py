"""Weights over cells that are too many to hold: trees of small tables that agree where they meet."""
