"""What shows each row of learning."""

ROWS = {
    "11-1": "tests/learning/test_statistical_queries.py::test_every_conjunction_of_three_features_is_learnt",
    "11-2": "tests/learning/test_concepts.py::test_the_bound_of_the_theorem",
    "11-3": "tests/learning/test_statistical_queries.py::test_what_is_drawn",
    "11-4": "tests/learning/test_experts.py::test_running_is_playing_and_updating",
    "11-5": "tests/learning/test_experts.py::test_both_algorithms_have_one_law_exhaustively",
    "11-6": "tests/learning/test_experts.py::test_both_algorithms_have_one_law_exhaustively",
    "11-7": "tests/learning/test_regret.py::test_golden_numbers",
    "11-8": "tests/learning/test_regret.py::test_golden_numbers",
    "11-9": "tests/learning/test_regret.py::test_golden_numbers",
    "11-10": "tests/learning/test_regret.py::test_rounds_and_eta_fit_the_bound",
    "11-11": "tests/learning/test_linear_learner.py::test_it_finds_the_least_coordinate",
}
