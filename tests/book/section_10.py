"""What shows each row of mechanism design."""

ROWS = {
    "10-1": "tests/games/test_welfare.py::test_expectations_of_neighbours_and_what_a_lie_gains",
    "10-2": "tests/games/test_welfare.py::test_expectations_of_neighbours_and_what_a_lie_gains",
    "10-3": "tests/games/test_auction.py::test_the_revenue_is_nearly_the_best_one",
    "10-4": "tests/games/test_large_games.py::test_both_pure_profiles_are_equilibria",
    "10-5": "tests/games/test_large_games.py::test_what_is_left_to_gain",
    "10-6": "tests/games/test_welfare.py::test_the_law_maximises_welfare_plus_entropy",
    "10-7": "tests/games/test_punishing.py::test_no_lie_pays_in_random_games",
    "10-8": "tests/games/test_punishing.py::test_the_parameters_of_the_theorem",
    "10-9": "tests/games/test_punishing.py::test_the_gap_of_facilities",
    "10-10": "tests/games/test_welfare.py::test_costs_of_information",
    "10-11": "tests/games/test_welfare.py::test_the_law_maximises_welfare_plus_entropy",
    "10-12": "tests/games/test_sensitive_surveyor.py::test_no_finite_payment_is_enough_where_values_are_secret",
    "10-13": "tests/games/test_welfare.py::test_costs_of_information",
    "10-14": "tests/games/test_voting.py::test_the_vote_as_printed_loses_twice_its_epsilon",
    "10-15": "not built: a remark on prices that clear a market, without an algorithm of its own",
}
