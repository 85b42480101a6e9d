"""Audits: whether a claim of privacy can be refuted, for any mechanism, ours, a peer's or a user's.

The package stands in a folder of another name than its function `dpfast.audit`, which would hide it.

>>> import dpfast as dpf
>>> dpf.auditing.privacy_loss([0.75, 0.25], [0.25, 0.75])[1] < -1.09
True
"""

from dpfast.auditing.auditor import audit
from dpfast.auditing.distances import histogram_distance, row_distance
from dpfast.auditing.exactly import audit_law
from dpfast.auditing.laws import hockey_stick_divergence, privacy_loss
from dpfast.auditing.limits import lower_limit, upper_limit
from dpfast.auditing.one_run import audit_one_run, one_run_epsilon, one_run_p_value
from dpfast.auditing.result import Audit, LawAudit, OneRunAudit

__all__ = [
    "Audit",
    "LawAudit",
    "OneRunAudit",
    "audit",
    "audit_law",
    "audit_one_run",
    "histogram_distance",
    "hockey_stick_divergence",
    "lower_limit",
    "one_run_epsilon",
    "one_run_p_value",
    "privacy_loss",
    "row_distance",
    "upper_limit",
]
