"""Calibrated mechanisms: parameters -> kernel -> refinement."""
