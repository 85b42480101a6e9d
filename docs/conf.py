"""Settings of the documentation: `python -m sphinx -W --keep-going docs site` builds it, and fails on a warning."""

from __future__ import annotations

import sys
from importlib.metadata import version as version_of
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE.parent), str(HERE / "_extensions")]

project = "dpfast"
author = "the authors of dpfast"
project_copyright = author
version = release = version_of("dpfast")

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx_copybutton",
    "sphinx_design",
    "mathml",
    "public_names",
]

source_suffix = {".md": "markdown"}
exclude_patterns = ["_extensions"]
nitpicky = False
suppress_warnings: list[str] = []
today_fmt = "%Y-%m-%d"

myst_enable_extensions = ["attrs_block", "attrs_inline", "colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3

# What a docstring says of a parameter is more than its annotation, which is for programs.
autodoc_typehints = "none"
autodoc_member_order = "groupwise"
autodoc_preserve_defaults = True
add_module_names = False
default_role = "literal"
napoleon_google_docstring = False
napoleon_use_param = False
napoleon_custom_sections = ["Guarantee", ("Attributes", "params_style")]

html_theme = "pydata_sphinx_theme"
html_title = "dpfast"
html_static_path = ["_static"]
html_css_files = ["dpfast.css"]
html_math_renderer = "mathml"
html_show_sourcelink = False
html_copy_source = False
html_theme_options = {
    "logo": {"text": "dpfast"},
    "navbar_align": "left",
    "navbar_end": ["theme-switcher"],
    "header_links_before_dropdown": 7,
    "show_toc_level": 2,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": [],
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}
# Pages without a neighbour in their section, and pages that need the whole width.
html_sidebars = {page: [] for page in ("index", "tutorial", "installation", "coming-from/*")}
copybutton_exclude = ".linenos, .gp, .go"
