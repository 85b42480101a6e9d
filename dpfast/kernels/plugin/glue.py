"""The C symbols of the library around the compiled bodies, as LLVM's text: for Polars, and for DuckDB."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from dpfast.kernels.plugin import layout
from dpfast.kernels.plugin.layout import ERRORS, INTERNAL, NO_CALLBACK, OPERATIONS

__all__ = ["VERSION", "glue"]

VERSION = 0 << 16 | 1
"""Polars' version of plugins: 0.1, in which fields are given the pickled arguments too."""


def glue(names: Mapping[str, str], words: Mapping[str, int]) -> str:
    """Return all C symbols.

    Parameters
    ----------
    names
        The compiled functions' own symbols, by their Python names.
    words
        How many int64 each takes.

    """
    parts = [_errors(), _settings(), _shared(), *(_plain(name, symbol, words[name]) for name, symbol in names.items())]
    for number, operation in enumerate(OPERATIONS):
        parts.append(_body(number, operation))
        parts.append(_field(operation))
    parts.append(_duckdb())
    parts += [_vector(name, *given) for name, given in layout.VECTOR_FUNCTIONS.items()]
    return "\n".join(parts)


def _text(name: str, text: str) -> str:
    kept = text.encode() + b"\0"
    escaped = "".join(f"\\{byte:02X}" for byte in kept)
    return f'@{name} = internal constant [{len(kept)} x i8] c"{escaped}"'


def _texts(name: str, texts: Sequence[str]) -> list[str]:
    """Return a table of C strings."""
    pointers = ", ".join(f"ptr @{name}_{number}" for number in range(len(texts)))
    own = [_text(f"{name}_{number}", text) for number, text in enumerate(texts)]
    return [*own, f"@{name} = internal constant [{len(texts)} x ptr] [{pointers}]"]


def _errors() -> str:
    lines = _texts("dpfast_errors", ERRORS)
    lines += [
        "@dpfast_last = internal thread_local global i64 0",
        "define ptr @_polars_plugin_get_last_error_message() {",
        "  %number = load i64, ptr @dpfast_last",
        f"  %place = getelementptr [{len(ERRORS)} x ptr], ptr @dpfast_errors, i64 0, i64 %number",
        "  %text = load ptr, ptr %place",
        "  ret ptr %text",
        "}",
        f"define i32 @_polars_plugin_get_version() {{ ret i32 {VERSION} }}",
    ]
    return "\n".join(lines)


def _settings() -> str:
    """Return what Python sets: its callback, which can be taken back, and the allocator, which cannot.

    `dpfast_set_callback` returns how many calls are under way: once it has set 0, no other begins. The allocator is
    decided by whichever is first, setting it or using it (1 stands for the C library's), so that whatever it gave is
    given back to the same one.
    """
    return f"""@dpfast_callback = internal global i64 0
@dpfast_inside = internal global i64 0
@dpfast_allocator = internal global i64 0
define i64 @dpfast_set_callback(i64 %given) {{
  store atomic i64 %given, ptr @dpfast_callback seq_cst, align 8
  %inside = load atomic i64, ptr @dpfast_inside seq_cst, align 8
  ret i64 %inside
}}
define i64 @dpfast_refine(i64 %job) {{
start:
  %before = atomicrmw add ptr @dpfast_inside, i64 1 seq_cst
  %callback = load atomic i64, ptr @dpfast_callback seq_cst, align 8
  %none = icmp eq i64 %callback, 0
  br i1 %none, label %end, label %called
called:
  %function = inttoptr i64 %callback to ptr
  %returned = call i64 %function(i64 %job)
  br label %end
end:
  %status = phi i64 [ {NO_CALLBACK}, %start ], [ %returned, %called ]
  %after = atomicrmw sub ptr @dpfast_inside, i64 1 seq_cst
  ret i64 %status
}}
define void @dpfast_set_allocator(i64 %given) {{
  %tried = cmpxchg ptr @dpfast_allocator, i64 0, i64 %given seq_cst seq_cst
  ret void
}}
define i64 @dpfast_of_allocator() {{
  %tried = cmpxchg ptr @dpfast_allocator, i64 0, i64 1 seq_cst seq_cst
  %kept = extractvalue {{ i64, i1 }} %tried, 0
  %none = icmp ule i64 %kept, 1
  %address = select i1 %none, i64 0, i64 %kept
  ret i64 %address
}}"""


def _plain(name: str, symbol: str, words: int) -> str:
    """Return a compiled function as a C function of int64 to an int64: what it returns, or that it failed."""
    given = ", ".join(f"i64 %x{word}" for word in range(words))
    types = ", ".join(["ptr", "ptr"] + ["i64"] * words)
    return f"""declare i32 @"{symbol}"({types})
define i64 @dpfast_{name}({given}) {{
  %result = alloca i64
  %failed = alloca ptr
  %status = call i32 @"{symbol}"(ptr %result, ptr %failed, {given})
  %good = icmp eq i32 %status, 0
  %number = load i64, ptr %result
  %returned = select i1 %good, i64 %number, i64 {INTERNAL}
  ret i64 %returned
}}"""


def _shared() -> str:
    """Return what frees, and where it is; and counts of references, which no array here has."""
    lines = [
        "define void @NRT_incref(ptr %meminfo) { ret void }",
        "define void @NRT_decref(ptr %meminfo) { ret void }",
    ]
    for name in ("release_array", "release_field", "release_series"):
        lines += [
            f"define void @dpfast_c_{name}(ptr %given) {{",
            "  %address = ptrtoint ptr %given to i64",
            f"  call i64 @dpfast_{name}(i64 %address)",
            "  ret void",
            "}",
            f"define i64 @dpfast_of_{name}() {{ ret i64 ptrtoint (ptr @dpfast_c_{name} to i64) }}",
        ]
    return "\n".join(lines)


def _body(number: int, operation: str) -> str:
    given = "ptr %inputs, i64 %count, ptr %arguments, i64 %size, ptr %returned, ptr %context"
    return f"""define void @_polars_plugin_{operation}({given}) {{
  call i64 @dpfast_{operation}_under_key({given}, ptr null)
  ret void
}}
define i64 @dpfast_{operation}_under_key({given}, ptr %key) {{
  %a = ptrtoint ptr %inputs to i64
  %b = ptrtoint ptr %arguments to i64
  %c = ptrtoint ptr %returned to i64
  %d = ptrtoint ptr %key to i64
  %error = call i64 @dpfast_run(i64 {number}, i64 %a, i64 %count, i64 %b, i64 %size, i64 %c, i64 %d)
  store i64 %error, ptr @dpfast_last
  ret i64 %error
}}"""


def _field(operation: str) -> str:
    return f"""define void @_polars_plugin_field_{operation}(ptr %fields, i64 %count, ptr %returned, ptr %arguments, \
i64 %size) {{
  %a = ptrtoint ptr %fields to i64
  %c = ptrtoint ptr %returned to i64
  %error = call i64 @dpfast_field_of(i64 %a, i64 %count, i64 %c)
  store i64 %error, ptr @dpfast_last
  ret void
}}"""


_FORBIDDEN = "open it by dpfast.integrations.duckdb.register_functions"


def _duckdb() -> str:
    """Return the table that Python fills in, the slots of blocks, and what DuckDB calls when it opens the library."""
    opened = f"getelementptr (i8, ptr @dpfast_duckdb, i64 {8 * layout.DUCKDB_OPENED})"
    return f"""{_text("dpfast_forbidden", _FORBIDDEN)}
@dpfast_duckdb = global [{layout.DUCKDB_WORDS} x i64] zeroinitializer, align 8
define i64 @dpfast_of_duckdb() {{ ret i64 ptrtoint (ptr @dpfast_duckdb to i64) }}
define i64 @dpfast_take_block(i64 %slot) {{
  %place = inttoptr i64 %slot to ptr
  %block = atomicrmw xchg ptr %place, i64 0 seq_cst
  ret i64 %block
}}
define i64 @dpfast_put_block(i64 %slot, i64 %block) {{
  %place = inttoptr i64 %slot to ptr
  %tried = cmpxchg ptr %place, i64 0, i64 %block seq_cst seq_cst
  %put = extractvalue {{ i64, i1 }} %tried, 1
  %number = zext i1 %put to i64
  ret i64 %number
}}
define void @dpfast_c_forget_function(ptr %made) {{
  %address = ptrtoint ptr %made to i64
  call i64 @dpfast_forget_function(i64 %address)
  ret void
}}
define zeroext i1 @dpfast_init_c_api(ptr %info, ptr %access) {{
  %callback = load i64, ptr {opened}
  %none = icmp eq i64 %callback, 0
  br i1 %none, label %refused, label %called
refused:
  %fail = load ptr, ptr %access
  call void %fail(ptr %info, ptr @dpfast_forbidden)
  ret i1 false
called:
  %function = inttoptr i64 %callback to ptr
  call void %function(ptr %info, ptr %access)
  ret i1 true
}}"""


def _words_of(error: int) -> str:
    if error in (layout.SCALE_NULL, layout.SCALE_RANGE):
        return layout.VECTOR_SCALE
    if error == layout.NOT_FINITE:
        return layout.VECTOR_FINITE
    if error in (layout.CATEGORIES, layout.EPSILON):
        return ERRORS[error]
    return layout.VECTOR_MEMORY if error == layout.NO_MEMORY else layout.VECTOR_OTHER


def _vector(name: str, operation: int, form: int) -> str:
    """Return a DuckDB function: (info, input chunk, output vector). An error has the words of the one in Python."""
    texts = _texts(f"{name}_errors", [f"DataError: {name}: {_words_of(error)}" for error in range(len(ERRORS))])
    table = f"getelementptr (i8, ptr @dpfast_duckdb, i64 {8 * layout.DUCKDB_FAIL})"
    return (
        "\n".join(texts)
        + f"""
define void @{name}(ptr %info, ptr %chunk, ptr %result) {{
  %a = ptrtoint ptr %info to i64
  %b = ptrtoint ptr %chunk to i64
  %c = ptrtoint ptr %result to i64
  %error = call i64 @dpfast_draw_vector(i64 {operation}, i64 {form}, i64 %a, i64 %b, i64 %c)
  %good = icmp eq i64 %error, 0
  br i1 %good, label %end, label %failed
failed:
  %fail = load ptr, ptr {table}
  %place = getelementptr ptr, ptr @{name}_errors, i64 %error
  %text = load ptr, ptr %place
  call void %fail(ptr %info, ptr %text)
  br label %end
end:
  ret void
}}"""
    )


# Stamp of all kernel sources (scripts/stamp_kernels.py): 80018a2d62413b73
