"""Strategies: what is measured of a histogram, so that a workload's answers, put together from it, err least."""
