"""The command that previews a plan: on public or made-up rows, without a ledger."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dpfast.cli.arguments import draw_plan
from dpfast.cli.documents import say, wants_document, write_document
from dpfast.cli.errors import CommandError
from dpfast.cli.files import read_typed_table
from dpfast.cli.options import combined
from dpfast.cli.output import FRAME_SUFFIXES, Target, chart_target, write_frame

if TYPE_CHECKING:
    from dpfast.releases.preview import Preview

__all__ = ["preview_options", "preview_to"]

#: The options of a preview beside those of a release.
preview_options: Callable[[Any], Any] = combined(
    click.option("--sample", metavar="FILE", help="Public rows, a Parquet or Arrow file.  [default: made-up rows]"),
    click.option("--rows", type=int, metavar="N", help="How many made-up rows there are.  [default: 10,000]"),
    click.option("--groups", type=int, metavar="N", help="In how many groups, of Zipf-like sizes.  [default: 20]"),
    click.option("--made-up-units", type=int, metavar="N", help="Of how many units.  [default: a fifth]"),
    click.option("--sizes", metavar="N,...", help="Or the rows of each made-up group."),
    click.option("--repeats", type=int, default=20, show_default=True, metavar="N", help="How often it is drawn."),
    click.option("--out", metavar="FILE", help="Where to write a row for every group and figure."),
    click.option("--overwrite", is_flag=True, help="Replace --out and --plot if they exist."),
    click.option("--plot", metavar="FILE", help="Draw the first figure: .png, .svg or .pdf."),
)


def preview_to(given: dict[str, Any]) -> None:
    """Draw a preview, write what was asked for, and say what was found."""
    import dpfast as dpf

    sample, out, plot, overwrite = (given.pop(name) for name in ("sample", "out", "plot", "overwrite"))
    shape = {"rows": given.pop("rows"), "groups": given.pop("groups"), "units": given.pop("made_up_units")}
    shape |= {"sizes": _read_sizes(given.pop("sizes")), "repeats": given.pop("repeats")}
    if sample is not None and any(Path(sample).resolve() == Path(file).resolve() for file in given["files"]):
        raise CommandError("--sample is one of FILES; it must be public: leave it out to preview made-up rows")
    targets: list[Target] = []
    keep = (*given["files"], given["keys"] or "", sample or "")
    try:
        chart = chart_target(plot, overwrite=overwrite, keep=keep)
        targets += [] if chart is None else [chart]
        frame = None if out is None else Target(out, "--out", FRAME_SUFFIXES, overwrite=overwrite, keep=keep)
        targets += [] if frame is None else [frame]
        plan = draw_plan(given)
        shown = dpf.preview(plan, None if sample is None else read_typed_table(sample, "--sample"), **shape)
        if frame is not None:
            frame.save(lambda part: write_frame(shown.frame, part))
        if chart is not None:
            chart.save(lambda part: shown.plot(part, top=given["plot_groups"]))
    finally:
        for target in targets:
            target.discard()
    _tell(shown, out, plot)


def _tell(shown: Preview, out: str | None, plot: str | None) -> None:
    if wants_document():
        write_document(
            preview=True,
            of=shown.rows_of,
            repeats=shown.repeats,
            keys_lost=shown.keys_lost,
            rows_cut=shown.rows_cut,
            figures=shown.summary.to_dicts(),
            out=out,
            plot=plot,
        )
        return
    say("\n".join([shown.explain(), *(f"wrote {path}" for path in (out, plot) if path is not None)]))


def _read_sizes(text: str | None) -> list[int] | None:
    if text is None:
        return None
    try:
        return [int(size) for size in text.split(",")]
    except ValueError:
        raise CommandError("--sizes cannot be read; write for example --sizes 5000,800,20") from None
