"""The page: one file with everything in it, whatever the names hold."""

from __future__ import annotations

import re
from html.parser import HTMLParser

import pytest

from dpfast.bench.page import write_page
from tests.bench.made_up import frame, measured

NASTY = "<script>alert('x')</script> & $10^6$"


class Tags(HTMLParser):
    def __init__(self):
        super().__init__()
        self.open, self.found = [], []

    def handle_starttag(self, tag, attributes):
        self.found.append((tag, dict(attributes)))
        if tag not in ("meta", "br", "path", "use", "rect"):
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.found.append((tag, dict(attributes)))

    def handle_endtag(self, tag):
        if tag not in ("path", "use", "rect"):
            assert self.open.pop() == tag


def test_a_page_needs_no_network_and_runs_nothing(tmp_path):
    rows = frame((NASTY, measured([1.0] * 7, [2.0] * 7)), ("b", measured([], failure="raised", note="raised X: <b>")))
    write_page(rows, tmp_path / "page.html")
    text = (tmp_path / "page.html").read_text()
    tags = Tags()
    tags.feed(text)
    assert tags.open == []
    assert not {tag for tag, _ in tags.found} & {"script", "link", "iframe", "img", "object"}
    # What an SVG is described by are names, and no addresses that are read.
    linked = [value for _, attributes in tags.found for name, value in attributes.items() if name in ("src", "href")]
    assert all(value.startswith("#") for value in linked)
    assert "url(http" not in text
    assert "2x (2 to 2)" in text
    assert "a processor, AVX2, 2 cores, 8 GB" in text
    assert re.search(r'<tr class="wrong">.*raised', text)


def test_the_charts_are_there_where_matplotlib_is(tmp_path, monkeypatch):
    pytest.importorskip("matplotlib")
    rows = frame(("a", measured([1.0] * 7, [2.0] * 7)))
    write_page(rows, tmp_path / "page.html")
    assert '<svg role="img" aria-label=' in (tmp_path / "page.html").read_text()
    monkeypatch.setattr("dpfast.bench.page.importlib.util.find_spec", lambda name: None)
    write_page(rows, tmp_path / "plain.html")
    assert "<svg" not in (tmp_path / "plain.html").read_text()
