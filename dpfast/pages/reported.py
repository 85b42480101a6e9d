"""What has a page: a result that people keep, and show to others."""

from __future__ import annotations

from abc import ABC, abstractmethod
from pathlib import Path

from dpfast.pages.page import Page
from dpfast.pages.saving import Overwrite, PagePath, check_page, save_page

__all__ = ["Reported"]


class Reported(ABC):
    """A result that writes a page about itself."""

    __slots__ = ()

    @abstractmethod
    def _page(self) -> Page:
        """Return the page: of what this object holds, and of nothing else."""

    def report(self, path: PagePath, *, overwrite: Overwrite = False) -> Path:
        """Write a page of HTML about this result: one file that needs no network and runs nothing.

        It says in plain words what is promised to whom, and shows the figures, how far off they may be where that is
        known, the budget before and after, how all of it was made, and versions. Of many figures it draws the largest,
        and lists the first thousands.

        Guarantee
            Post-processing: the page has nothing but what this object holds already, and costs nothing. All text in it
            is escaped.

        Parameters
        ----------
        path
            Where to write it; it ends in ``.html``.
        overwrite
            Whether an earlier page may be replaced. A file that is no page, such as a ledger, is not in any case.

        Returns
        -------
        pathlib.Path
            Where it is.

        Raises
        ------
        ParameterError
            The path is no place for it, or cannot be written.

        Examples
        --------
        >>> import tempfile
        >>> import dpfast as dpf
        >>> estimate = dpf.estimate_histogram([900, 20, 0, 310], epsilon=1.0, ledger=dpf.Ledger(epsilon=2.0))
        >>> page = estimate.report(tempfile.mkdtemp() + "/estimate.html").read_text()
        >>> "<h1" in page, "<script" in page
        (True, False)

        """
        check_page(path, overwrite)
        return save_page(self._page().html(), path, overwrite)
