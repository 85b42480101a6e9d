"""Pages of HTML about releases and ledgers: self-contained, made of what was released already."""

from dpfast.pages.page import Page, Section
from dpfast.pages.saving import Overwrite, PagePath, check_page, save_page

__all__ = ["Overwrite", "Page", "PagePath", "Section", "check_page", "save_page"]
