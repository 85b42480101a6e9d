"""The plugin's AES-256 in counter mode, at every width of vectors, against another implementation."""

from __future__ import annotations

import ctypes
import re

import llvmlite.binding as llvm
import numpy as np
import pytest

from dpfast.integrations.plugin.library import reads_glue
from dpfast.kernels.encryption import BATCH_BYTES, encryption, has_aes, schedule_bytes, vector_blocks
from dpfast.kernels.plugin.building import can_compile
from dpfast.randomness import Keystream, Purpose

if not (can_compile() and reads_glue()):
    pytest.skip("no AES instructions, or an LLVM that cannot read it", allow_module_level=True)

WIDEST = vector_blocks(llvm.get_host_cpu_features())
WIDTHS = [pytest.param(blocks, marks=pytest.mark.skipif(blocks > WIDEST, reason="none here")) for blocks in (1, 2, 4)]


@pytest.fixture(params=WIDTHS)
def cipher(request):
    """A function from (key, counter, batches) to bytes, and the engine that it lives in."""
    machine = llvm.Target.from_default_triple().create_target_machine(
        cpu=llvm.get_host_cpu_name(), features=llvm.get_host_cpu_features().flatten()
    )
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(encryption(request.param)), machine)
    engine.finalize_object()
    words = [ctypes.c_int64] * 4
    prepare = ctypes.CFUNCTYPE(ctypes.c_int64, *words[:2])(engine.get_function_address("dpfast_prepare_key"))
    fill = ctypes.CFUNCTYPE(ctypes.c_int64, *words)(engine.get_function_address("dpfast_fill_words"))

    def run(key, counter, batches):
        given = ctypes.create_string_buffer(key, 32)
        schedule = ctypes.create_string_buffer(schedule_bytes(request.param))
        out = ctypes.create_string_buffer(b"\x55" * (BATCH_BYTES * batches + 16))
        prepare(ctypes.addressof(given), ctypes.addressof(schedule))
        fill(ctypes.addressof(schedule), counter, ctypes.addressof(out), batches)
        return out.raw[: BATCH_BYTES * batches], out.raw[BATCH_BYTES * batches : -1]

    yield run
    del engine


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("batches", [0, 1, 2, 33])
def test_the_same_bytes_as_the_keystream(cipher, seed, batches):
    """Chunk numbers up to the largest that 2**63 rows have, and keys of all bits."""
    generator = np.random.default_rng(seed)
    key = generator.bytes(32)
    chunk = [0, 1, 2, 255, 2**24 + 3, 2**31 - 1][seed % 6]
    right = np.empty(BATCH_BYTES * batches, np.uint8)
    if batches:
        Keystream(key).words(Purpose.NOISE).fill(chunk, right)
    drawn, beyond = cipher(key, chunk << 32, batches)
    assert drawn == right.tobytes()
    assert beyond.strip(b"\x55") in (b"", b"\0")


def test_widths_follow_features():
    assert not has_aes({"sse2": True, "ssse3": True})
    assert has_aes({"aes": True, "sse2": True, "ssse3": True})
    assert vector_blocks({"aes": True}) == 1
    assert vector_blocks({"aes": True, "vaes": True, "avx2": True}) == 2
    assert vector_blocks({"aes": True, "vaes": True, "avx2": True, "avx512f": True}) == 4


@pytest.mark.parametrize(("blocks", "processor"), [(1, "haswell"), (2, "znver3"), (4, "icelake-server")])
def test_vectors_are_encrypted_side_by_side(blocks, processor):
    """A round of eight vectors is a loop's turn: unrolled, LLVM would encrypt one vector after the other."""
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    target = llvm.Target.from_triple("x86_64-unknown-linux-gnu")
    machine = target.create_target_machine(cpu=processor, features="+aes", opt=3)
    module = llvm.parse_assembly(encryption(blocks))
    options = llvm.create_pipeline_tuning_options(speed_level=3)
    options.loop_unrolling = True
    passes = llvm.create_pass_builder(machine, options)
    passes.getModulePassManager().run(module, passes)
    body = machine.emit_assembly(module).split("dpfast_fill_words:")[1]
    rounds = re.findall(r"\bv?aesenc\s.*", body)
    assert len(rounds) == 8
    # All eight with the round's one key, none of them between two others' ends.
    assert len(re.findall(r"\bv?aesenclast\s", body)) == 8
