"""What LLVM made of the kernels: strict arithmetic, wide vectors, integers that stay integers."""

from __future__ import annotations

import gzip
import json
import os
import platform
import re
import subprocess
import sys
from pathlib import Path

import llvmlite.binding
import pytest

from .compiled_kernels import digests, settings

HERE = Path(__file__).parent
#: What was compiled last: a minute and a half of a processor's time where nothing has changed since.
KEPT = HERE / "__pycache__" / "compiled_kernels.json.gz"
STAMPS = HERE.parent.parent / "scripts" / "stamp_kernels.py"
FAST_MATH = re.compile(r"\b(fast|nnan|ninf|nsz|arcp|contract|afn|reassoc)\b")
FLOAT_OPERATION = re.compile(r"\b(fadd|fsub|fmul|fdiv|frem|fneg|fcmp|call|select|phi|fptrunc|fpext)\b")

#: Every kernel that noise goes through, and the vectors that it must consist of with 256 bits or more.
NOISE_KERNELS = {
    "noise.narrow_laplace._draw_f32": r"<(8|16) x float>",
    "noise.narrow_laplace._draw_values_f32": r"<(8|16) x float>",
    "noise.narrow_laplace._settle": r"<(4|8) x double>",
    "noise.narrow_laplace.release_laplace_on_ones": None,
    "noise.narrow_laplace.release_laplace_on_grids": None,
    "noise.laplace.draw_laplace_f64": r"<(4|8) x double>",
    "noise.gaussian.draw_blocks": None,
    "noise.gaussian.draw_gaussian": r"<(4|8) x double>",
    "noise.gaussian_f32.find_roots": r"<(8|16) x float>",
    "noise.gaussian_f32.draw_numbers": r"<(8|16) x float>",
    "noise.gaussian_f32.draw_values": r"<(8|16) x float>",
    "noise.sums._sum_close": r"<(4|8) x double>",
    "noise.sums._sum_near": r"<(4|8) x double>",
    "noise.sums.mark_open": r"<(8|16) x float>",
    "noise.open_pairs.list_open_pairs": r"<8 x float>",
    "noise.narrow_gaussian._list_open": None,
    "noise.narrow_gaussian._settle_on_ones": None,
    "noise.narrow_gaussian._settle_on_grids": None,
    "noise.narrow_gaussian.release_gaussian_on_ones": None,
    "noise.narrow_gaussian.release_gaussian_on_grids": None,
    "noise.joining.add_noise": r"<(2|4|8|16) x i64>",
    "noise.joining.join_multiples": None,
    "noise.joining.join_grid": r"<(4|8) x double>",
    "noise.joining.zero_missing": None,
    "noise.preparation.prepare_discrete": r"<(4|8) x double>",
    "noise.preparation.prepare_narrow": r"<(4|8) x double>",
    "noise.preparation.prepare_grid": r"<(4|8) x double>",
    "noise.preparation.prepare_multiples": None,
    "selection.gaps.round_gaps": None,
    "selection.gaps.gap_chunk": None,
    "selection.gaps._settle_pairs": r"<(4|8) x double>",
    "grouping.ordering.count_rows": None,
    "grouping.ordering.order_rows": None,
    "selection.differences.best_of_chunk": r"<(2|4|8) x i64>",
    "selection.differences.best_score": r"<(2|4|8) x i64>",
    "selection.differences.halve_below": None,
    "selection.differences.halve_row": r"<(4|8) x double>",
    "selection.key_bounds.bound_above": r"<(4|8) x double>",
    "selection.key_bounds.largest_key": r"<(4|8) x i64>",
    "selection.key_bounds.last_place": r"<(4|8) x i64>",
    "selection.key_bounds.count_from": r"<(4|8) x i64>",
    "selection.key_bounds.bound_stretch": None,
    "selection.key_bounds.bound_closely": r"<(4|8) x double>",
    "selection.key_bounds.noise_of": None,
    "selection.key_bounds.interval": None,
    "selection.ranking.end_of_stretch": None,
    "selection.ranking.gather": None,
    "selection.ranking.rank": None,
    "selection.ranking.is_certain": None,
    "selection.ranking.rank_row": None,
    "selection.ranking.rank_chunk": None,
    "selection.ranking.rank_groups": None,
    "selection.ranking.rank_again": None,
    "selection.sorting.sort_descending": None,
    "selection.sorting.threshold_of_largest": None,
    "selection.argmax._keep_contenders": None,
    "selection.argmax.select_chunk": None,
    "selection.argmax.compare_groups": None,
    "selection.argmax.select_row": None,
    "selection.thresholds.bound_thresholds": None,
    "selection.thresholds._bound_above": r"<(4|8) x double>",
    "selection.thresholds._count_reaching": r"<(4|8) x double>",
    "selection.thresholds.scan_runs": None,
    "weights.exponential_weights.weigh": r"<(4|8) x double>",
    "weights.exponential_weights.sum_halves": r"<(4|8) x double>",
    "weights.exponential_weights.weigh_blocks": None,
    "weights.exponential_weights.locate": None,
    "selection.alias.floor_masses": None,
    "selection.alias.build_table": None,
    "selection.alias.draw_from_table": None,
}
INTEGER_KERNELS = ["noise.joining.add_noise", "noise.joining.join_multiples"]


def kept_kernels(names):
    """Return what is kept of the kernels, None where a source, a version or a processor was another one."""
    try:
        kept = json.loads(gzip.decompress(KEPT.read_bytes()))
    except (OSError, EOFError, ValueError):
        return None
    same = kept["settings"] == settings() and kept["sources"] == digests(kept["sources"])
    return kept["kernels"] if same and kept["names"] == names else None


@pytest.fixture(scope="module")
def compiled(tmp_path_factory):
    wide = [name for name, vectors in NOISE_KERNELS.items() if vectors]
    if (kept := kept_kernels(wide)) is not None:
        return kept
    environment = dict(os.environ)
    if environment.pop("NUMBA_BOUNDSCHECK", None) is not None:  # a cache of such kernels has no others
        environment["NUMBA_CACHE_DIR"] = str(tmp_path_factory.mktemp("numba"))
    command = [sys.executable, str(HERE / "compiled_kernels.py"), *wide]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=1200, check=False)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout) | {"names": wide}
    KEPT.parent.mkdir(exist_ok=True)
    KEPT.write_bytes(gzip.compress(json.dumps(found).encode(), 1))
    return found["kernels"]


@pytest.mark.parametrize("name", NOISE_KERNELS)
def test_the_kernel_was_compiled_and_can_be_read(name, compiled):
    assert compiled[name]["compiled"]
    assert all("define" in one["ir"] for one in compiled[name]["compiled"])


def test_no_noise_kernel_is_missing_above(compiled):
    """A new kernel of these files must be added to the table."""
    rooms = {name.partition(".")[0] for name in NOISE_KERNELS}
    named = {name for name, kernel in compiled.items() if name.partition(".")[0] in rooms and kernel["compiled"]}
    drawing = {name for name in named if compiled[name]["options"]["nogil"] and "._" not in name}
    inlined = {"gaussian.", "logarithm.", "offsets."}
    assert {name for name in drawing if not name.startswith(tuple(inlined))} <= set(NOISE_KERNELS)


def test_no_kernel_asks_for_fast_math(compiled):
    """The error bounds hold for IEEE operations as written: every file of kernels, compiled here or not."""
    assert compiled
    for name, kernel in compiled.items():
        assert not kernel["options"]["fastmath"], name
        assert not kernel["options"]["parallel"], name
        assert kernel["options"]["nogil"], name


def flagged(ir: str) -> list[str]:
    """Return the lines of operations on floats that carry a fast-math flag."""
    return [line for line in ir.splitlines() if FLOAT_OPERATION.search(line) and FAST_MATH.search(line.split('"')[0])]


@pytest.mark.parametrize("name", [name for name in NOISE_KERNELS if name.startswith("noise.")])
def test_words_become_floats_without_an_instruction_of_avx_512(name, compiled):
    """Elsewhere LLVM takes vectors of 64-bit integers apart, a conversion each."""
    for one in compiled[name]["compiled"]:
        assert not re.search(r"[su]itofp <\d+ x i64>", one["ir"]), one["signature"]


@pytest.mark.parametrize("name", NOISE_KERNELS)
def test_no_operation_has_a_fast_math_flag(name, compiled):
    """Soundness rule 4 supposes strict arithmetic: the IR of every signature, line by line."""
    for one in compiled[name]["compiled"]:
        assert flagged(one["ir"]) == [], one["signature"]


def test_a_fast_kernel_is_found_out():
    """The mutant: the same search finds the flags of fastmath=True."""
    source = (
        "import numba, numpy as np\n"
        "@numba.njit(fastmath=True)\n"
        "def total(x):\n"
        "    s = 0.0\n"
        "    for i in range(x.size):\n"
        "        s += x[i] * 2.5\n"
        "    return s\n"
        "total(np.ones(3))\n"
        "print(total.inspect_llvm(total.signatures[0]))\n"
    )
    ir = subprocess.run([sys.executable, "-c", source], capture_output=True, text=True, timeout=1200, check=True).stdout
    assert flagged(ir)


def wide_vectors() -> bool:
    features = llvmlite.binding.get_host_cpu_features()
    return platform.machine() in ("x86_64", "AMD64") and bool(features.get("avx2"))


@pytest.mark.skipif(not wide_vectors(), reason="needs AVX2")
@pytest.mark.parametrize("name", [name for name, vectors in NOISE_KERNELS.items() if vectors])
def test_kernels_are_vectorised(name, compiled):
    """Every signature: a branch or a widened integer in the loop would leave scalars."""
    for one in compiled[name]["compiled"]:
        assert re.search(NOISE_KERNELS[name], one["ir"]), one["signature"]


#: The vectors of 128 bits that a Neoverse core has in place of those above.
ON_NEOVERSE = {
    "float": r"f(mla|mul|add|sub|cm\w+)\.4s",
    "double": r"f(mla|mul|add|sub|cm\w+)\.2d",
    "i64": r"(add|sub|cm\w+|and|bif|bit)\.(2d|16b)",
}


@pytest.mark.parametrize("name", [name for name, vectors in NOISE_KERNELS.items() if vectors])
def test_kernels_are_vectorised_on_neoverse(name, compiled):
    """Compiled for a processor of 64-bit ARM, and not run: the signature with most arrays computes on vectors."""
    kind = NOISE_KERNELS[name].rpartition(" ")[2].rstrip(">")
    found = compiled[name]["neoverse"]
    assert any(re.fullmatch(ON_NEOVERSE[kind], instruction) for instruction in found), found


def test_no_kernel_is_compiled_for_a_literal_number(compiled):
    """Numba would compile it once for `0` and once for any int64, twice the wait: `np.int64(0)` is written then."""
    literal = {one["signature"] for kernel in compiled.values() for one in kernel["compiled"]}
    assert not [signature for signature in literal if "Literal[int]" in signature]


def test_selections_are_compiled_for_two_types_of_scores(compiled):
    """Narrower scores are widened: a type more would mean ten seconds more before a first result."""
    for name in ("selection.argmax.select_chunk", "selection.ranking.rank_chunk", "selection.ranking.rank"):
        scores = {one["signature"].partition(")")[0] for one in compiled[name]["compiled"]}
        assert scores <= {f"(Array({dtype}, 1, 'C', True, aligned=True" for dtype in ("int64", "float64")}, name


@pytest.mark.parametrize("name", INTEGER_KERNELS)
def test_integers_never_become_floats(name, compiled):
    """Numba unifies int64 with uint64 to float64, which loses bits from 2**53 on."""
    for one in compiled[name]["compiled"]:
        assert one["floats"] == [], one["signature"]


def test_stamps_are_up_to_date():
    """Else a changed callee leaves stale code in users' caches."""
    done = subprocess.run(
        [sys.executable, str(STAMPS), "--check"], capture_output=True, text=True, timeout=1200, check=False
    )
    assert done.returncode == 0, done.stdout
