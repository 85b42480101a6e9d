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

from .draws_of_processor import HALVES

SCRIPT = Path(__file__).parent / "draws_of_processor.py"
#: A processor's name, and the features that tell LLVM to forget what this machine has.
PROCESSORS = {"nehalem": "+sse4.2", "haswell": "+avx2", "skylake-avx512": "+avx512f"}
NEEDED = {"nehalem": "sse4.2", "haswell": "avx2", "skylake-avx512": "avx512f"}

pytestmark = pytest.mark.skipif(platform.machine() not in ("x86_64", "AMD64"), reason="these are processors of x86-64")


def draws(what, folder=None, processor=None):
    environment = {**os.environ}
    if processor is not None:
        if not llvmlite.binding.get_host_cpu_features().get(NEEDED[processor]):
            pytest.skip(f"code for {processor} does not run here")
        environment |= {
            "NUMBA_CPU_NAME": processor,
            "NUMBA_CPU_FEATURES": PROCESSORS[processor],
            "NUMBA_CACHE_DIR": str(folder),
        }
    done = subprocess.run(
        [sys.executable, str(SCRIPT), what], env=environment, capture_output=True, text=True, timeout=1200, check=True
    )
    return json.loads(done.stdout)


@pytest.mark.parametrize(("processor", "half"), [*zip(["nehalem", "haswell"], HALVES, strict=True)])
def test_noise_is_the_same_on(processor, half, tmp_path):
    """Most of the time is compiling: each pair of processor, mechanism and dtype meets, all three in the long test.

    So every route is drawn on this processor and on one of the others, with every kind of scale.
    """
    drawn = draws(half, tmp_path, processor)
    assert len(drawn) == 12
    assert drawn == draws(half)


def test_the_halves_are_all_routes():
    assert len(set.union(*HALVES.values())) == 4


@pytest.mark.long
@pytest.mark.parametrize("processor", PROCESSORS)
@pytest.mark.parametrize("what", ["noise", "selections"])
def test_everything_drawn_is_the_same_on(what, processor, tmp_path):
    assert draws(what, tmp_path, processor) == draws(what)


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
