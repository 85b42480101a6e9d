"""The same key gives the same noise, bit for bit, on every processor: with AVX-512, with AVX2, and without FMA.

A fused operation rounds once on all of them (without FMA the system's library computes it), a vector's width changes
no value, and no kernel sums in an order that depends on it.
"""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
from pathlib import Path

import llvmlite.binding
import pytest

from .draws_of_processor import ALL, NUMBERS, SOME

SCRIPT = Path(__file__).parent / "draws_of_processor.py"
#: What is compiled for other processors is kept from one run to the next, apart from what users' processes find.
KEPT = Path(__file__).parent / "__pycache__" / "kernels"
#: A processor's name, and the features that tell LLVM to forget what this machine has.
PROCESSORS = {"nehalem": "+sse4.2", "haswell": "+avx2", "skylake-avx512": "+avx512f"}
NEEDED = {"nehalem": "sse4.2", "haswell": "avx2", "skylake-avx512": "avx512f"}

pytestmark = pytest.mark.skipif(platform.machine() not in ("x86_64", "AMD64"), reason="these are processors of x86-64")


def draws(what, processor=None):
    environment = {**os.environ}
    if processor is not None:
        if not llvmlite.binding.get_host_cpu_features().get(NEEDED[processor]):
            pytest.skip(f"code for {processor} does not run here")
        environment |= {
            "NUMBA_CPU_NAME": processor,
            "NUMBA_CPU_FEATURES": PROCESSORS[processor],
            "NUMBA_CACHE_DIR": str(KEPT / processor),
        }
    done = subprocess.run(
        [sys.executable, str(SCRIPT), what], env=environment, capture_output=True, text=True, timeout=1200, check=True
    )
    return json.loads(done.stdout)


@pytest.mark.parametrize("processor", ["nehalem", "haswell"])
def test_noise_is_the_same_on(processor):
    """Most of the time is compiling: each pair of mechanism, dtype and kind of scale meets, all three in the long test.

    A processor without AVX-512 compiles what haswell does: the same width, the same operations.
    """
    if processor == "haswell" and not llvmlite.binding.get_host_cpu_features().get("avx512f"):
        pytest.skip("this processor has no wider vectors than haswell")
    drawn = draws("some-noise", processor)
    assert len(drawn) == 12
    assert drawn == draws("some-noise")


def test_some_noise_has_all_pairs():
    """Of mechanisms, dtypes and kinds of scale."""
    assert SOME.keys() == ALL.keys()
    for part in (0, 1):
        met = {(route[part], scales is NUMBERS) for route, scales in SOME.items()}
        assert met == {(route[part], are_numbers) for route in ALL for are_numbers in (True, False)}


@pytest.mark.long
@pytest.mark.parametrize("processor", PROCESSORS)
@pytest.mark.parametrize("what", ["noise", "selections"])
def test_everything_drawn_is_the_same_on(what, processor):
    assert draws(what, processor) == draws(what)


def test_an_order_of_sums_would_be_found(tmp_path):
    """The mutant: a sum that the compiler may regroup has other bits where vectors are wider."""
    source = (
        "import numba, numpy as np\n"
        "@numba.njit(fastmath={'reassoc'})\n"
        "def total(x):\n"
        "    s = 0.0\n"
        "    for i in range(x.size):\n"
        "        s += x[i]\n"
        "    return s\n"
        "print(total(np.random.default_rng(1).random(10_001)).hex())\n"
    )
    sums = set()
    for processor in ("nehalem", "haswell"):
        environment = os.environ | {"NUMBA_CPU_NAME": processor, "NUMBA_CPU_FEATURES": PROCESSORS[processor]}
        command = [sys.executable, "-c", source]
        sums.add(subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout)
    assert len(sums) == 2
