"""Where things stand in the structures that bodies, Polars and the refinement share; and the words of errors.

Arrow's C data interface, and Polars' plugins of version 0.1: a series is a field, its chunks and their number.
"""

from __future__ import annotations

__all__ = [
    "ERRORS",
    "FINISHED",
    "FORMATS",
    "GAUSSIAN",
    "JOB_WORDS",
    "LAPLACE",
    "MAGIC",
    "OPERATIONS",
    "RESPONSE",
]

#: What a plugin function does; its number in bodies and in jobs of refinement.
OPERATIONS = ("laplace", "gaussian", "randomized_response")
LAPLACE, GAUSSIAN, RESPONSE = 0, 1, 2

#: Arrow's formats of the columns that are taken, in the order of their numbers.
FORMATS = ("int64", "l"), ("int32", "i"), ("uint32", "I"), ("float64", "g"), ("float32", "f")

#: What stands before parameters in the pickled arguments of a plugin function.
MAGIC = b"dpfast:1"

# ArrowSchema, ArrowArray, and Polars' export of a series, in bytes.
SCHEMA_BYTES, SCHEMA_FORMAT, SCHEMA_NAME, SCHEMA_FLAGS = 72, 0, 8, 24
SCHEMA_DICTIONARY, SCHEMA_RELEASE, SCHEMA_PRIVATE = 48, 56, 64
ARRAY_BYTES, ARRAY_LENGTH, ARRAY_NULLS, ARRAY_OFFSET, ARRAY_BUFFER_COUNT = 80, 0, 8, 16, 24
ARRAY_BUFFERS, ARRAY_DICTIONARY, ARRAY_RELEASE, ARRAY_PRIVATE = 40, 56, 64, 72
SERIES_BYTES, SERIES_FIELD, SERIES_ARRAYS, SERIES_LENGTH, SERIES_RELEASE, SERIES_PRIVATE = 40, 0, 8, 16, 24, 32
NULLABLE = 2

# A job of refinement: words of eight bytes.
(
    JOB_OPERATION,
    JOB_FORMAT,
    JOB_KEY,
    JOB_WORDS_AT,
    JOB_ROWS,
    JOB_START,
    JOB_LENGTH,
    JOB_VALUES,
    JOB_SCALES,
    JOB_PER_ROW,
    JOB_UNDECIDED,
    JOB_COUNT,
    JOB_RELEASED,
    JOB_PARAMETERS,
    JOB_FINISHED,
) = range(15)
#: An even number: what stands behind it is aligned.
JOB_WORDS = 16

#: What the refinement returns, and writes into its job last. Nothing else is success: where Python raises before the
#: first line of a callback, what that returns is whatever stood in memory.
FINISHED = int.from_bytes(b"finished", "little")

_NUMBERS = "int64, int32, uint32, float64 or float32"
#: What an error says, by the number that a body returns; 0 is none.
ERRORS = (
    "no error",
    "dpfast failed inside the plugin; please report it",
    f"values must have numbers of type {_NUMBERS}; write .cast(pl.Int64) or .cast(pl.Float64) before the noise",
    f"scale must have numbers of type {_NUMBERS}; write .cast(pl.Float64)",
    "values and scale must be columns of one length, or scale one number",
    "scale must have no null; fill it first",
    "scale must be a number from 2**-960 (about 1.03e-289) to 2**960 (about 9.74e+288) in every row",
    "scale must be at most 2**60 (about 1.15e+18) for integers; cast the column to float64",
    "values must be finite, but a row is NaN or infinite; replace it first by a fixed number",
    "the operating system gave no random key",
    "not enough memory",
    "a value that the first bits do not decide needs Python: import dpfast.integrations.polars_plugin first, and make "
    "the expression again if another version of dpfast made it",
    "a value that the first bits do not decide was not finished in Python: it was interrupted, or failed; try again",
    "values must be whole numbers of type int64, int32 or uint32; write .cast(pl.Int64)",
    "scale must be whole numbers that float64 holds; round it up and write .cast(pl.Float64)",
    "the plugin was called in a way that this version of Polars does not know",
)
(
    OK,
    INTERNAL,
    VALUES_TYPE,
    SCALE_TYPE,
    LENGTHS,
    SCALE_NULL,
    SCALE_RANGE,
    SCALE_LARGE,
    NOT_FINITE,
    NO_KEY,
    NO_MEMORY,
    NO_CALLBACK,
    NOT_REFINED,
    WHOLE_TYPE,
    SCALE_INEXACT,
    PROTOCOL,
) = range(len(ERRORS))


# Stamp of all kernel sources (scripts/stamp_kernels.py): 50d7a273b52b8327
