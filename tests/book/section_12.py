"""What shows each row of local privacy, pan-privacy, continual observation and average-case release."""

ROWS = {
    "12-1": "not built: the local model's rows are answered with the room dpfast/local",
    "12-2": "not built: the local model's rows are answered with the room dpfast/local",
    "12-3": "tests/streaming/test_pan_private.py::test_figures_and_state_together_are_private",
    "12-4": "tests/streaming/test_pan_private.py::test_the_density_is_estimated_without_bias",
    "12-5": "not built: named in the text without an algorithm; the density estimator stands for the family",
    "12-6": "tests/streaming/test_trees.py::test_naive_counters_are_worse",
    "12-8": "tests/streaming/test_trees.py::test_golden_variance_of_figure_12_1",
    "12-9": "tests/streaming/test_tails.py::test_a_sum_of_laplace_variables_stays_within_the_bound",
    "12-10": "tests/streaming/test_tails.py::test_golden_width_of_all_prefixes",
    "12-11": "tests/streaming/test_tails.py::test_equal_scales",
    "12-12": "tests/streaming/test_trees.py::test_what_figure_12_1_keeps_gives_an_increment_away",
    "12-13": "tests/streaming/test_pan_private.py::test_golden_variance_of_figure_12_2",
    "12-14": "tests/streaming/test_tails.py::test_the_largest_error_grows_as_the_square_of_the_logarithm",
    "12-15": "tests/streaming/test_tails.py::test_no_counter_errs_less_than_the_logarithm_allows",
    "12-16": "tests/synthesis/test_projection_mechanism.py::test_golden_facts_of_the_toy",
    "12-17": "tests/synthesis/test_projection_mechanism.py::test_the_toy_gains_an_order_of_magnitude",
    "12-18": "tests/synthesis/test_projection.py::test_lemma_12_9_without_its_factor_of_two",
    "12-19": "tests/synthesis/test_projection.py::test_it_is_the_nearest_point_and_the_certificate_holds",
}
