"""AES-256 in counter mode by the processor's own instructions, as LLVM's text.

`dpfast_prepare_key` expands a key (FIPS 197, section 5.2); `dpfast_fill_words` writes the keystream from one counter
on, eight vectors at a time of one, two or four blocks: as wide as the processor's vector AES is. Vectors of a
batch are independent of each other, so that the processor works on all of them at once.
"""

from __future__ import annotations

from collections.abc import Mapping

__all__ = ["BATCH_BYTES", "SCHEDULE_BYTES", "batch_bytes", "encryption", "has_aes", "schedule_bytes", "vector_blocks"]

BATCH_BYTES = 512
"""What `dpfast_fill_words` counts in, however wide vectors are."""

_VECTORS = 8
_ROUNDS = 14

SCHEDULE_BYTES = (_ROUNDS + 1) * 64
"""How much memory a key's schedule takes at most."""


def has_aes(features: Mapping[str, bool]) -> bool:
    """Return whether a processor has the instructions."""
    return all(features.get(name, False) for name in ("aes", "sse2", "ssse3"))


def vector_blocks(features: Mapping[str, bool]) -> int:
    """Return how many blocks one instruction encrypts."""
    if features.get("vaes", False) and features.get("avx512f", False):
        return 4
    return 2 if features.get("vaes", False) and features.get("avx2", False) else 1


def batch_bytes(blocks: int) -> int:
    """Return how many bytes eight vectors have."""
    return _VECTORS * blocks * 16


def schedule_bytes(blocks: int) -> int:
    """Return how much memory a key's schedule takes: every round key as often as a vector has blocks."""
    return (_ROUNDS + 1) * blocks * 16


def encryption(blocks: int) -> str:
    """Return the two functions for vectors of so many blocks."""
    return "\n".join([_declarations(blocks), _prepare_key(blocks), _fill_words(blocks)])


def _kind(blocks: int) -> str:
    return f"<{2 * blocks} x i64>"


def _suffix(blocks: int) -> str:
    return "" if blocks == 1 else f".{128 * blocks}"


def _declarations(blocks: int) -> str:
    kind = _kind(blocks)
    names = ["aesenc", "aesenclast"]
    lines = [f"declare {kind} @llvm.x86.aesni.{name}{_suffix(blocks)}({kind}, {kind})" for name in names]
    lines.append(f"declare {kind} @llvm.bswap.v{2 * blocks}i64({kind})")
    lines.append("declare <2 x i64> @llvm.x86.aesni.aeskeygenassist(<2 x i64>, i8 immarg)")
    return "\n".join(lines)


def _prepare_key(blocks: int) -> str:
    """Expand the key: round key n from n - 2, moved over itself word by word, and a word of n - 1."""
    lines = [
        "define i64 @dpfast_prepare_key(i64 %key, i64 %schedule) {",
        "  %from = inttoptr i64 %key to ptr",
        "  %to = inttoptr i64 %schedule to ptr",
        "  %k0 = load <2 x i64>, ptr %from, align 1",
        "  %second = getelementptr i8, ptr %from, i64 16",
        "  %k1 = load <2 x i64>, ptr %second, align 1",
    ]
    constant = 1
    for number in range(2, _ROUNDS + 1):
        even = number % 2 == 0
        # An even round key takes the rotated word with the round's constant, an odd one the word as it is.
        word = 3 if even else 2
        lines += [
            f"  %a{number} = call <2 x i64> @llvm.x86.aesni.aeskeygenassist(<2 x i64> %k{number - 1}, "
            f"i8 {constant if even else 0})",
            f"  %w{number} = bitcast <2 x i64> %a{number} to <4 x i32>",
            f"  %s{number} = shufflevector <4 x i32> %w{number}, <4 x i32> poison, "
            f"<4 x i32> <i32 {word}, i32 {word}, i32 {word}, i32 {word}>",
            f"  %p{number}x0 = bitcast <2 x i64> %k{number - 2} to <4 x i32>",
        ]
        for step in range(3):
            lines += [
                f"  %m{number}x{step} = shufflevector <4 x i32> zeroinitializer, <4 x i32> %p{number}x{step}, "
                f"<4 x i32> <i32 0, i32 4, i32 5, i32 6>",
                f"  %p{number}x{step + 1} = xor <4 x i32> %p{number}x0, %m{number}x{step}",
            ]
        lines += [
            f"  %r{number} = xor <4 x i32> %p{number}x3, %s{number}",
            f"  %k{number} = bitcast <4 x i32> %r{number} to <2 x i64>",
        ]
        if even:
            constant *= 2
    for number in range(_ROUNDS + 1):
        for copy in range(blocks):
            place = f"%o{number}x{copy}"
            lines += [
                f"  {place} = getelementptr i8, ptr %to, i64 {16 * (blocks * number + copy)}",
                f"  store <2 x i64> %k{number}, ptr {place}, align 1",
            ]
    return "\n".join([*lines, "  ret i64 0", "}"])


def _fill_words(blocks: int) -> str:
    """Write batches of encrypted counters: the upper half of every counter is 0, as of noise (randomness.py).

    Each turn of an inner loop takes all vectors through one round. The loop must not be unrolled: LLVM would then keep
    the round keys in registers, have none left for eight vectors, and encrypt them one after the other, at two thirds
    of the speed.
    """
    kind, suffix, lanes = _kind(blocks), _suffix(blocks), 2 * blocks
    key_bytes = 16 * blocks
    lines = [
        "define i64 @dpfast_fill_words(i64 %schedule, i64 %counter, i64 %address, i64 %batches) {",
        "entry:",
        "  %keys = inttoptr i64 %schedule to ptr",
        "  %out = inttoptr i64 %address to ptr",
        f"  %final = getelementptr i8, ptr %keys, i64 {key_bytes * _ROUNDS}",
    ]
    current = f"{kind} poison"
    for lane in range(lanes):
        value = "%counter" if lane % 2 else "0"
        lines.append(f"  %f{lane} = insertelement {current}, i64 {value}, i64 {lane}")
        current = f"{kind} %f{lane}"
    first = ", ".join(f"i64 {lane // 2 if lane % 2 else 0}" for lane in range(lanes))
    lines += [
        f"  %first = add {current}, <{first}>",
        f"  %all = mul i64 %batches, {BATCH_BYTES // batch_bytes(blocks)}",
        "  %any = icmp sgt i64 %all, 0",
        "  br i1 %any, label %batch, label %done",
        "batch:",
        "  %number = phi i64 [ 0, %entry ], [ %next, %last ]",
        f"  %counters = phi {kind} [ %first, %entry ], [ %later, %last ]",
        f"  %offset = mul i64 %number, {batch_bytes(blocks)}",
        "  %place = getelementptr i8, ptr %out, i64 %offset",
        f"  %k0 = load {kind}, ptr %keys, align 1",
    ]
    for vector in range(_VECTORS):
        step = ", ".join(f"i64 {vector * blocks if lane % 2 else 0}" for lane in range(lanes))
        lines += [
            f"  %c{vector} = add {kind} %counters, <{step}>",
            f"  %b{vector} = call {kind} @llvm.bswap.v{lanes}i64({kind} %c{vector})",
            f"  %x{vector} = xor {kind} %b{vector}, %k0",
        ]
    lines += ["  br label %round", "round:", "  %r = phi i64 [ 1, %batch ], [ %s, %round ]"]
    lines += [f"  %y{vector} = phi {kind} [ %x{vector}, %batch ], [ %z{vector}, %round ]" for vector in range(_VECTORS)]
    lines += [
        f"  %where = mul i64 %r, {key_bytes}",
        "  %own = getelementptr i8, ptr %keys, i64 %where",
        f"  %k = load {kind}, ptr %own, align 1",
    ]
    lines += [
        f"  %z{vector} = call {kind} @llvm.x86.aesni.aesenc{suffix}({kind} %y{vector}, {kind} %k)"
        for vector in range(_VECTORS)
    ]
    step = ", ".join(f"i64 {_VECTORS * blocks if lane % 2 else 0}" for lane in range(lanes))
    lines += [
        "  %s = add i64 %r, 1",
        f"  %again = icmp slt i64 %s, {_ROUNDS}",
        "  br i1 %again, label %round, label %last, !llvm.loop !0",
        "last:",
        f"  %e = load {kind}, ptr %final, align 1",
    ]
    for vector in range(_VECTORS):
        lines += [
            f"  %w{vector} = call {kind} @llvm.x86.aesni.aesenclast{suffix}({kind} %z{vector}, {kind} %e)",
            f"  %t{vector} = getelementptr i8, ptr %place, i64 {key_bytes * vector}",
            f"  store {kind} %w{vector}, ptr %t{vector}, align 1",
        ]
    return "\n".join(
        [
            *lines,
            f"  %later = add {kind} %counters, <{step}>",
            "  %next = add i64 %number, 1",
            "  %more = icmp slt i64 %next, %all",
            "  br i1 %more, label %batch, label %done",
            "done:",
            "  ret i64 0",
            "}",
            "!0 = distinct !{!0, !1}",
            '!1 = !{!"llvm.loop.unroll.disable"}',
        ]
    )


# Stamp of all kernel sources (scripts/stamp_kernels.py): 80018a2d62413b73
