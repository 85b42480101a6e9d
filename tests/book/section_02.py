"""What shows each row of section 2.3: definitions, randomized response, post-processing."""

ROWS = {
    "2.3-1": "tests/local/test_bits.py::test_the_warner_coin_version_of_the_book",
    "2.3-2": "tests/local/test_oracles.py::test_the_estimator_of_warners_coins",
    "2.3-3": "tests/auditing/test_laws.py::test_a_deterministic_function_that_is_not_constant_fails",
    "2.3-4": "tests/auditing/test_laws.py::test_what_is_not_in_the_simplex_is_refused",
    "2.3-5": "tests/auditing/test_laws.py::test_distances_of_histograms_and_rows",
    "2.3-6": "tests/auditing/test_laws.py::test_the_hockey_stick_of_randomized_response",
    "2.3-7": "tests/auditing/test_laws.py::test_the_privacy_loss",
    "2.3-8": "tests/release/test_explanation.py::test_warnings",
    "2.3-9": "tests/auditing/test_laws.py::test_whatever_is_made_of_an_output_keeps_its_privacy",
}
