"""A plan for people to read: what it does as text, its noisy measures as a table."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dpfast.cli.terminal import console, print_table

if TYPE_CHECKING:
    from dpfast.releases.plan import Plan

__all__ = ["show_plan"]

_HEADERS = ("query", "measure", "sensitivity", "noise", "scale", "95% within", "epsilon", "delta")


def show_plan(plan: Plan) -> None:
    """Print a plan to standard output."""
    console().print(plan.explain(measures=False))
    rows = [
        (
            row["query"],
            row["measure"],
            f"{row['norm']} {row['sensitivity']:g} = {row['reason']}",
            row["kernel"],
            f"{row['scale']:g}",
            f"{row['error95']:g}",
            f"{row['epsilon']:.6g}",
            f"{row['delta']:.6g}",
        )
        for row in plan.to_frame().iter_rows(named=True)
    ]
    print_table(_HEADERS, rows, left=4)
