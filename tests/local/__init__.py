"""Tests of the local model."""
