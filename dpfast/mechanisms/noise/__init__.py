"""Noise on columns: Laplace, Gaussian, and what they are calibrated by."""
