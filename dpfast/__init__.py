"""dpfast: differentially private statistics at the speed of the data."""
