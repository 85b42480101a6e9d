"""Tests of what is stable: blocks, tests of a distance, sensitivities at the data at hand."""
