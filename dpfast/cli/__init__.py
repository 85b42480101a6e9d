"""The command ``dpfast``: releases, plans, ledgers and a demonstration."""

from dpfast.cli.commands import main

__all__ = ["main"]
