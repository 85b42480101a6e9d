"""What shows each row of section 7, where worst-case sensitivity is atypical."""

ROWS = {
    "7-1": "tests/stability/test_blocks.py::test_a_row_more_changes_one_block",
    "7-2": "tests/stability/test_trimming.py::test_the_change_of_one_number_is_bounded_and_reached",
    "7-3": "tests/stability/test_subsample_and_aggregate.py::test_a_mode_needs_many_blocks_even_if_all_agree",
    "7-4": "tests/stability/test_subsample_and_aggregate.py::test_example_of_significant_features",
    "7-5": "tests/stability/test_instability.py::test_local_sensitivity_of_the_median",
    "7-6": "tests/stability/test_instability.py::test_noise_in_proportion_to_local_sensitivity_is_not_private",
    "7-7": "tests/stability/test_propose_test_release.py::test_the_median_is_private_on_all_small_data",
    "7-8": "tests/stability/test_instability.py::test_distances_to_another_scale_differ_by_one_between_neighbours",
    "7-9": "tests/stability/test_scale.py::test_scale_is_private_on_all_small_data",
    "7-10": "tests/stability/test_instability.py::test_rows_until_another_scale",
    "7-11": "tests/stability/test_instability.py::test_distance_of_the_median",
    "7-12": "tests/stability/test_passing.py::test_gold_numbers_of_continuous_noise",
    "7-13": "tests/stability/test_instability.py::test_distance_of_the_mode",
    "7-14": "tests/stability/test_subsamples.py::test_constants_of_the_reference",
    "7-15": "tests/stability/test_subsamples.py::test_constants_of_the_lemma",
    "7-16": "tests/stability/test_subsamples.py::test_example_of_the_raw_data_problem",
}
