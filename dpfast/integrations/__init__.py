"""Other people's pipelines: thin ways to the one plan, the one ledger and the one release.

Nothing here is imported by `import dpfast`. A package that need not be installed is imported when it is used.
"""
