"""Counters that release a figure at every step of a stream, and pan-private ones whose own state tells nothing."""
