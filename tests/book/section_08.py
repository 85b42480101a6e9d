"""What shows each row of lower bounds and reconstruction."""

ROWS = {
    "8-2": "tests/attacks/test_reconstruction.py::test_all_subset_sums_betray_all_but_four_times_the_error",
    "8-3": "tests/attacks/test_reconstruction.py::test_a_quarter_of_the_answers_may_be_arbitrary",
    "8-4": "tests/attacks/test_reconstruction.py::test_a_tenth_of_the_square_root_is_no_protection",
    "8-6": "tests/attacks/test_lower_bounds.py::test_packed_databases_cannot_be_told_apart_with_less",
    "8-7": "tests/attacks/test_lower_bounds.py::test_packed_databases_cannot_be_told_apart_with_less",
    "8-8": "tests/attacks/test_lower_bounds.py::test_laplace_noise_on_marginals_is_a_logarithm_above_the_bound",
    "8-9": "tests/attacks/test_lower_bounds.py::test_golden_numbers",
    "8-10": "tests/attacks/test_lower_bounds.py::test_few_cells_are_measured_in_place_of_many_queries",
}
