"""Tests of counters of streams."""
