"""What shows each row of the exponential mechanism (3.4)."""

ROWS = {
    "3.4-1": "tests/selection/test_accuracy.py::test_pumpkin_auction",
    "3.4-2": "tests/selection/test_accuracy.py::test_neighbouring_auctions",
    "3.4-3": "tests/selection/test_probabilities.py::test_no_pair_of_neighbours_loses_more_than_epsilon",
    "3.4-5": "tests/selection/test_accuracy.py::test_theorem_3_11_on_exact_probabilities",
    "3.4-6": "tests/selection/test_accuracy.py::test_corollary_3_12",
    "3.4-7": "tests/selection/test_accuracy.py::test_example_3_6",
    "3.4-9": "tests/selection/test_probabilities.py::test_exact_probabilities_of_permute_and_flip_by_its_own_algorithm",
    "3.4-10": "tests/selection/test_accuracy.py::test_theorem_3_13_of_the_text_is_false",
}
