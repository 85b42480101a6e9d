"""Marginals of many columns, all measured at once: residuals, with errors that are known before the data are."""
