"""What a person sees of a page, in Chromium: at desktop and phone widths, light and dark, by keyboard and by ear."""

from __future__ import annotations

import itertools
import os
import shutil

import pytest

import dpfast as dpf

from .released import EVIL, answers, counts, every_value, no_group
from .test_other_results import RESULTS

if os.environ.get("DPFAST_TEST_CHROMIUM") == "0":
    pytest.skip("DPFAST_TEST_CHROMIUM=0: no page is opened", allow_module_level=True)
playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
if CHROMIUM is None:
    pytest.skip("no Chromium is installed: apt-get install chromium", allow_module_level=True)

VIEWS = [(1280, "light"), (1280, "dark"), (390, "light"), (390, "dark")]
#: WCAG 2.2, level AA: 1.4.3.
CONTRAST, LARGE_CONTRAST = 4.5, 3.0
#: Every text with its colour and what lies behind it; of SVG the fill.
COLOURS = """() => {
  const numbers = (colour) => colour.match(/[\\d.]+/g).map(Number);
  const behind = (element) => {
    for (let at = element; at; at = at.parentElement) {
      const [r, g, b, a = 1] = numbers(getComputedStyle(at).backgroundColor);
      if (a > 0) return [r, g, b];
    }
    return [255, 255, 255];
  };
  const found = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const element = walker.currentNode.parentElement;
    const style = getComputedStyle(element);
    if (!walker.currentNode.textContent.trim() || style.display === "none") continue;
    const colour = numbers(element.namespaceURI.endsWith("svg") ? style.fill : style.color).slice(0, 3);
    const size = parseFloat(style.fontSize);
    const large = size >= 24 || (size >= 18.66 && Number(style.fontWeight) >= 700);
    found.push([walker.currentNode.textContent.trim().slice(0, 40), colour, behind(element), large]);
  }
  return found;
}"""
#: Words of at most twelve characters that begin on one line and end on another: half a telephone has room for one.
BROKEN = """() => {
  const found = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const text = walker.currentNode;
    if (!text.parentElement.checkVisibility()) continue;
    for (const word of text.textContent.matchAll(/(?<![\\p{L}\\d.])[\\p{L}\\d.]{3,12}(?![\\p{L}\\d.])/gu)) {
      const range = document.createRange();
      range.setStart(text, word.index);
      range.setEnd(text, word.index + word[0].length);
      const tops = new Set([...range.getClientRects()].map((one) => Math.round(one.top)));
      if (tops.size > 1) found.push(word[0]);
    }
  }
  return found;
}"""
FOCUS = """() => {
  const one = document.activeElement, style = getComputedStyle(one), box = one.getBoundingClientRect();
  return {tag: one.tagName, name: one.getAttribute("aria-label") || one.textContent.slice(0, 40),
          outline: style.outlineStyle === "none" ? 0 : parseFloat(style.outlineWidth), top: box.top, left: box.left};
}"""


@pytest.fixture(scope="module")
def browser():
    with playwright.sync_playwright() as started:
        # Root may not have a sandbox of its own; the pages are ours.
        opened = started.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"] * (os.geteuid() == 0))
        yield opened
        opened.close()


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    """Return the path of a page of each kind."""
    folder = tmp_path_factory.mktemp("pages")
    ledger = dpf.Ledger.open(folder / "ledger.db", epsilon=4, delta=1e-6, dataset=EVIL)
    made = {
        "values": every_value(ledger),
        "many": counts(3000),
        "empty": no_group(),
        "answers": answers(dpf.workloads.prefix(60), 60),
        "cells": answers(dpf.workloads.identity(5), 5, neighbors="replace"),
        "adaptive": answers(dpf.workloads.all_range(12), 12, strategy="adaptive"),
    }
    for name, release in made.items():
        release.report(folder / f"{name}.html")
    for name, amount in (("basic", {"epsilon": 1.0}), ("zcdp", {"rho": 0.01}), ("rdp", {"rho": 0.01})):
        kept = dpf.Ledger(4, 1e-6, accountant=name)
        counts(4, ledger=kept, epsilon=amount.get("epsilon"), rho=amount.get("rho")).report(folder / f"in {name}.html")
        kept.write_report(folder / f"ledger {name}.html")
    ledger.write_report(folder / "ledger.html")
    for name in OTHERS:
        RESULTS[name]().report(folder / f"{name}.html")
    return {path.stem: path for path in folder.glob("*.html")}


OTHERS = ["records", "records of a model", "an estimate", "marginals"]
NAMES = [
    *OTHERS,
    *("values", "many", "empty", "answers", "cells", "adaptive", "ledger"),
    *(f"{what} {name}" for what in ("in", "ledger") for name in ("basic", "zcdp", "rdp")),
]


@pytest.fixture
def opened(browser, pages):
    """Return a function that opens a page and sees that it asks for nothing and says nothing to the console."""
    contexts = []

    def open_page(name, width=1280, scheme="light"):
        context, told = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme), []
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda message: told.append(message.text))
        page.on("dialog", lambda dialog: told.append(dialog.message))
        page.on("request", lambda request: told.append(request.url))
        page.goto(pages[name].as_uri())
        assert told == [pages[name].as_uri()]
        return page

    yield open_page
    for context in contexts:
        context.close()


def show(page, width, scheme="light"):
    """Turn an open page to another view: it runs nothing, so that it is the same as one opened there."""
    page.set_viewport_size({"width": width, "height": 900})
    page.emulate_media(color_scheme=scheme)


def luminance(colour):
    parts = [part / 255 for part in colour]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one, other):
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("name", NAMES)
def test_pages_fit_every_screen_and_can_be_read(opened, name):
    """No page scrolls sideways, and every text stands out from what lies behind it."""
    page = opened(name)
    for width, scheme in VIEWS:
        show(page, width, scheme)
        assert page.evaluate("document.documentElement.scrollWidth") == width
        colours = page.evaluate(COLOURS)
        assert len(colours) > 20
        # Texts of the same colours are alike: one of them is named.
        alike = {(*colour, *behind, large): (text, colour, behind, large) for text, colour, behind, large in colours}
        for text, colour, behind, large in alike.values():
            assert contrast(colour, behind) >= (LARGE_CONTRAST if large else CONTRAST), (scheme, text, colour, behind)
        dark = luminance(colours[0][2]) < 0.2
        assert dark == (scheme == "dark")


@pytest.mark.parametrize("name", ["ledger", "ledger basic", "ledger rdp", "in basic", "in rdp", "values", "marginals"])
def test_no_word_is_broken_in_the_middle(opened, name):
    """On a telephone, tables scroll rather than cut words to pieces."""
    page = opened(name)
    for width in (390, 1280):
        show(page, width)
        assert page.evaluate(BROKEN) == []


@pytest.mark.parametrize("name", NAMES)
def test_pages_are_read_aloud_in_order(opened, name):
    """By the accessibility tree: one title, headings that skip no level, and tables and figures that are named."""
    page = opened(name)
    levels = page.evaluate("[...document.querySelectorAll('h1, h2, h3, h4')].map(one => Number(one.tagName[1]))")
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after <= before + 1 for before, after in itertools.pairwise(levels))
    assert page.locator("table:not(:has(> caption:not(:empty))), th:not([scope])").count() == 0
    tree = page.locator("body").aria_snapshot()
    for role in ("- banner", "- heading", "- main", "- contentinfo", '- link "Skip to the content"', "- table"):
        assert role in tree or (name == "empty" and role == "- table")
    assert '- heading "What is promised" [level=2]' in tree
    # What is drawn has words beside it, or is left out because a list says the same.
    assert page.locator("svg:not([aria-hidden=true]):not([role=img][aria-label])").count() == 0


def test_a_person_sees_what_was_released(opened):
    page = opened("values", 390)
    text = page.locator("body").inner_text()
    for said in ("guess right at most 88.1% of the time", "ε = 2", "“<script>alert(1)</script>”", "(null)", "(empty)"):
        assert said in text
    assert page.locator("figure").count() >= 6
    assert page.locator("script").count() == 0
    first = page.locator(".bars li").first
    assert first.locator("svg rect.fill").bounding_box()["width"] > 1
    many = opened("many").locator("body").inner_text()
    assert "The 30 largest of 3,000 released groups" in many
    assert "These are the first 2,000 of 3,000 rows; 1,000 more are in the release's frame." in many


def test_the_keyboard_reaches_everything_and_is_caught_nowhere(opened):
    page = opened("values", 390)
    page.keyboard.press("Tab")
    first = page.evaluate(FOCUS)
    assert first["name"] == "Skip to the content"
    page.wait_for_timeout(300)  # it slides in
    assert page.evaluate(FOCUS)["top"] >= 0
    page.keyboard.press("Enter")
    assert page.evaluate(FOCUS)["tag"] == "MAIN"
    reached = []
    for _ in range(20):
        page.keyboard.press("Tab")
        focus = page.evaluate(FOCUS)
        if focus["tag"] == "BODY" or focus["name"] == "Skip to the content":
            break
        assert focus["outline"] >= 2, focus
        reached.append(focus["name"])
    else:
        pytest.fail(f"the keyboard is caught at {reached[-1]}")
    assert "Table: All groups that are shown" in reached
    region = page.get_by_role("region", name="Table: All groups that are shown")
    region.focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("End")
    page.wait_for_timeout(500)
    assert region.evaluate("one => one.scrollTop") > 0


def test_nothing_runs_and_nothing_loads_even_if_somebody_puts_it_there(opened):
    """The page's own policy, not only its escaping, keeps scripts, styles and pictures out."""
    page = opened("values")
    ran = page.evaluate(
        "() => { const one = document.createElement('script'); one.textContent = 'window.ran = 1';"
        "document.body.append(one); const other = document.createElement('div');"
        'other.innerHTML = \'<p id=styled style="color: rgb(1, 2, 3)" onclick="window.ran = 1">x</p>\';'
        "document.body.append(other); document.getElementById('styled').click();"
        "return [window.ran ?? null, getComputedStyle(document.getElementById('styled')).color]; }"
    )
    assert ran[0] is None
    assert ran[1] != "rgb(1, 2, 3)"


def test_on_paper_tables_are_whole(opened):
    page = opened("values", 1280, "dark")
    page.emulate_media(media="print", color_scheme="dark")
    assert page.locator(".scrolled").first.evaluate("one => getComputedStyle(one).maxHeight") == "none"
    assert luminance(page.evaluate(COLOURS)[0][2]) > 0.9
    assert page.pdf().startswith(b"%PDF")
