"""The page: one file with everything in it, whatever the names hold."""

from __future__ import annotations

import re
from html.parser import HTMLParser

from dpfast.bench.cases import Measured
from dpfast.bench.page import write_page
from tests.bench.made_up import frame, measured

NASTY = "<script>alert('x')</script> & $10^6$"


class Tags(HTMLParser):
    def __init__(self):
        super().__init__()
        self.open, self.found = [], []

    def handle_starttag(self, tag, attributes):
        self.found.append((tag, dict(attributes)))
        if tag not in ("meta", "br", "path", "use", "rect", "line", "circle"):
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.found.append((tag, dict(attributes)))

    def handle_endtag(self, tag):
        if tag not in ("path", "use", "rect", "line", "circle"):
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
    assert '<td class="number">raised</td>' in text
    assert "1 of them raised an error: b, dpfast." in text


def test_ratios_are_drawn_from_lows_to_highs_of_any_size(tmp_path):
    spread = [0.001, 0.01, 0.1, 1.0, 10.0, 100.0, 1000.0]
    theirs = {"alike": [1.0] * 7, "far": [1e6] * 7, "never": [0.0] * 7, "spread": spread}
    write_page(frame(*((name, measured([1.0] * 7, some)) for name, some in theirs.items())), tmp_path / "page.html")
    text = (tmp_path / "page.html").read_text()
    assert text.count('class="dot"') == 3, "a ratio of 0 has no place on a scale of powers of ten"
    places = [float(place) for place in re.findall(r'(?:x1|x2|cx)="([-\d.]+)%"', text)]
    assert min(places) >= 0
    assert max(places) <= 100
    assert "nan" not in text


def test_what_a_value_costs_is_drawn_by_how_many_there_are(tmp_path):
    sizes = [
        Measured(who, size, (each * size + 1e-6,) * 7, per_value=True, is_first=who == "dpfast")
        for size in (1_000, 10_000, 100_000)
        for who, each in (("dpfast", 1e-9), ("NumPy", 2e-9))
    ]
    write_page(frame(("noise", sizes)), tmp_path / "page.html")
    text = (tmp_path / "page.html").read_text()
    assert "dpfast solid, NumPy dashed." in text
    assert "1,000 values</span><span>100,000 values" in text
    assert text.count("<path") == 2
    assert 'class="dot"' not in text


def test_a_page_of_one_row_and_one_of_failures_alone_are_whole(tmp_path):
    for found in (measured([1.0]), measured([], failure="raised", note="raised ValueError: no")):
        write_page(frame(("a", found)), tmp_path / "page.html")
        assert "</html>" in (tmp_path / "page.html").read_text()
