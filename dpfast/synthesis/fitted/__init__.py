"""Histograms that are fitted to noisy answers."""
