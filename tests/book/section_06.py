"""What shows each row of boosting for queries."""

ROWS = {
    "6-1": "tests/synthesis/test_boosting.py::test_golden_figures",
    "6-2": "tests/synthesis/test_boosting.py::test_no_answer_errs_by_more_than_lambda_and_mu",
    "6-3": "tests/synthesis/test_boosting.py::test_samples_have_the_weights_of_figure_6_1",
    "6-4": "tests/synthesis/test_boosting.py::test_golden_figures",
    "6-5": "tests/synthesis/test_boosting.py::test_golden_figures",
    "6-6": "tests/synthesis/test_boosting.py::test_the_share_of_bad_answers",
    "6-7": "tests/synthesis/test_boosting.py::test_a_sample_costs_what_lemma_6_4_says_and_a_mutant_more",
    "6-8": "tests/synthesis/test_boosting.py::test_the_margin_by_zero_concentration",
    "6-9": "tests/synthesis/test_boosting.py::test_all_that_is_drawn_stays_within_the_budget",
    "6-10": "tests/synthesis/test_boosting.py::test_golden_figures",
    "6-11": "tests/synthesis/test_base_generators.py::test_the_search_finds_the_first_list_of_all",
    "6-12": "tests/synthesis/test_boosting.py::test_a_subsample_of_a_synthetic_table_keeps_the_answers",
    "6-13": "tests/synthesis/test_base_generators.py::test_rounding_moves_no_query_by_more_than_the_accuracy",
    "6-14": "tests/synthesis/test_boosting.py::test_noise_of_the_printed_constant_would_cost_more_than_is_said",
}
