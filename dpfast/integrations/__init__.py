"""Other libraries and engines as sources of data, thin and above the same plan, ledger and release."""
