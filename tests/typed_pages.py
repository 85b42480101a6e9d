"""scripts/type_pages.py for tests: pages as a reader types them."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
_SPECIFICATION = importlib.util.spec_from_file_location("type_pages", ROOT / "scripts" / "type_pages.py")
type_pages = importlib.util.module_from_spec(_SPECIFICATION)
sys.modules["type_pages"] = type_pages  # where its dataclass looks for its own names
_SPECIFICATION.loader.exec_module(type_pages)
