"""What shows each row of the chapter of Near and Abuah on the exponential mechanism."""

ROWS = {
    "NA-1": "tests/selection/test_probabilities.py::test_marital_status",
    "NA-2": "tests/selection/test_probabilities.py::test_marital_status",
    "NA-3": "tests/selection/test_probabilities.py::test_marital_status_by_noisy_max",
    "NA-4": "tests/selection/test_probabilities.py::test_marital_status",
    "NA-6": "tests/selection/test_probabilities.py::test_laplace_noise_is_an_exponential_mechanism",
    "NA-8": "tests/quantiles/test_privacy.py::test_one_quantile",
}
