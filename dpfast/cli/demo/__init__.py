"""The demonstration: real flights released beside the truth, and the tables that README works with."""

from dpfast.cli.demo.flights import read_flights
from dpfast.cli.demo.routes import MAX_GROUPS, MAX_ROWS, plan_demo, run_demo, true_values
from dpfast.cli.demo.tables import write_tables

__all__ = [
    "MAX_GROUPS",
    "MAX_ROWS",
    "plan_demo",
    "read_flights",
    "run_demo",
    "true_values",
    "write_tables",
]
