"""What the cells of a histogram stand for: public values of columns, records into cells, and cells into records."""

from dpfast.domain.domain import Domain, histogram

__all__ = ["Domain", "histogram"]
