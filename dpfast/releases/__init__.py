"""Releases: what is asked is planned without looking at the data, charged, drawn once, and read as often as one likes.

request
    What was asked of `dpfast.plan`, as it was written; what is read of it is checked.
blueprint
    What will be aggregated, with which noise, at what cost. There are four kinds: `group_blueprint` for queries by
    group (made by `group_planning` from `splitting`, `choosing_keys` and `measure_noise`), `workload_blueprint` for a
    workload by a strategy chosen beforehand, `adaptive_blueprint` for one by an estimate that adapts to the data, and
    `staged_blueprint` for queries by group of which numbers are chosen privately first (`private_choices`).
plan
    A blueprint that can be run, once: charges, reads the data, and has the blueprint draw (`drawing`).
release
    What was drawn.
"""
