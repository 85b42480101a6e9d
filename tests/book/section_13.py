"""What shows each row of section 13 and the appendices."""

ROWS = {
    "13-2": "tests/accounting/test_accountants.py::TestAdvanced::test_golden",
    "13-3": "tests/ledger/test_filters.py::test_report_of_one_plan",
    "A-1": "tests/noise/test_golden_facts.py::test_appendix_a_classical_gaussian",
    "A-2": "tests/release/test_calibration.py::test_the_tail_of_the_privacy_loss_is_no_delta",
    "B-1": "tests/accounting/test_accountants.py::TestBasic::test_golden",
    "R-1": "tests/accounting/test_accountants.py::test_the_accountants_agree_on_who_is_tighter",
}
