"""Graphs of attributes, and records drawn from the tables of their cliques."""
