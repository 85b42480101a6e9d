"""The demonstration: real flights released beside the truth, and the tables that README works with."""
