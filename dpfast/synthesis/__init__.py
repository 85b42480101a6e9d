"""Histograms and synthetic records that answer many linear queries."""
