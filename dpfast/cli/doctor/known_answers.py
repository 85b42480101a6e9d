"""What calls with a seed must give, on every processor; written by scripts/write_known_answers.py."""

from __future__ import annotations

KNOWN_ANSWERS: dict[str, str] = {
    "Laplace noise, integers": "f806af93982e4e78",
    "Laplace noise, floats": "223b1b8882b23915",
    "Laplace noise, a scale a row": "436484566848c192",
    "Gaussian noise, integers": "7a11d93ed5817738",
    "Gaussian noise, floats": "d5d413f1eba20647",
    "Gaussian noise, a scale a row": "4ea7eb659aad09c0",
    "Exponential mechanism, rows": "f8b9ddeb9608d484",
    "Exponential mechanism, one row": "ae93c756c787fab5",
    "Exponential mechanism, draws": "81a67ca0b20c28fd",
    "Permute and flip": "537adf52f3315b15",
    "Noisy top k": "330aa84a0872e041",
    "Sparse vector": "1dd060ecac31f5cc",
    "Randomized response": "939112cb7568bb1d",
    "Quantiles": "5789f7dd8e0d64cd",
    "Reports by SubsetSelection": "c69fe7a02c7202bf",
    "Reports by OptimizedLocalHashing": "6dcb20a7f62bff37",
    "Reports by HadamardResponse": "3868111a8de05bd1",
    "Counter of a stream": "6ba5fb54f429e9ee",
    "Sketch of different numbers": "9c514cd82d9960d6",
    "Sketch of different texts": "dddebafd74a66bbc",
    "Weights of marginals": "67d25e35ee7a4f85",
    "Weights of ranges": "6b4f3477b66954b1",
}
