"""Pseudo-marginals: noisy marginals made nonnegative and consistent where no tree has room for a table of them."""
