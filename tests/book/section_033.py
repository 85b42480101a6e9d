"""What shows each row of the Laplace mechanism (3.3)."""

ROWS = {
    "3.3-1": "tests/release/test_sensitivity.py::test_the_formula_is_the_largest_move_there_is",
    "3.3-2": "tests/noise/test_goodness_of_fit.py::test_continuous_laplace",
    "3.3-3": "tests/noise/test_golden_facts.py::test_no_attack_finds_more_than_epsilon",
    "3.3-5": "tests/noise/test_golden_facts.py::test_the_mean_error_of_a_count_is_the_scale",
    "3.3-6": "tests/release/test_sensitivity.py::test_rows_as_units_move_one_group_by_one_row",
    "3.3-7": "tests/noise/test_golden_facts.py::test_fact_3_7",
    "3.3-8": "tests/noise/test_golden_facts.py::test_theorem_3_8_on_the_first_names",
    "3.3-9": "tests/noise/test_golden_facts.py::test_example_3_3_by_simulation",
    "3.3-10": "tests/selection/test_selection_examples.py::test_example",
    "3.3-11": "tests/selection/test_accuracy.py::test_example_3_6",
}
