"""Learning from experts and from examples, privately."""
