"""Calibrated mechanisms: parameters -> kernel -> refinement."""

from dpfast.announcement import announce_compilation

announce_compilation()
