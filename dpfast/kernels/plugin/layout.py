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
]

#: What a plugin function does; its number in bodies and in jobs of refinement.
OPERATIONS = ("laplace", "gaussian")
LAPLACE, GAUSSIAN = 0, 1
#: What else jobs are for, beside samples of those: answers that are undecided; two keys, for further bits and for
#: words; and the parameters of randomized response.
RESPONSE, KEYS, WEIGHTS = 2, 3, 4

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
    JOB_FIRST,
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
    JOB_FINISHED,
) = range(15)
#: An even number: what stands behind it is aligned.
JOB_WORDS = 16

#: How much keystream is made at a time for DuckDB's vectors; a whole number of batches.
BYTES_OF_A_KEY = 1 << 17
#: How many blocks of words a DuckDB function keeps between calls.
SLOTS = 63

#: DuckDB's functions, in the order of the table that Python fills in; see integrations/plugin/duckdb.py.
DUCKDB_FUNCTIONS = (
    "scalar_function_get_extra_info",
    "scalar_function_set_error",
    "data_chunk_get_size",
    "data_chunk_get_vector",
    "vector_get_data",
    "vector_get_validity",
    "vector_ensure_validity_writable",
)
# Behind them: what is called when DuckDB opens the library, the number that changes when no word may be used any more,
# and whether keys come from Python.
(
    DUCKDB_FUNCTION,
    DUCKDB_FAIL,
    DUCKDB_SIZE,
    DUCKDB_VECTOR,
    DUCKDB_DATA,
    DUCKDB_VALIDITY,
    DUCKDB_WRITABLE,
    DUCKDB_OPENED,
    DUCKDB_EPOCH,
    DUCKDB_SEEDED,
) = range(10)
DUCKDB_WORDS = 10

#: The functions that DuckDB gets: operation and the number of the format.
VECTOR_FUNCTIONS = {
    "dpf_laplace": (LAPLACE, 0),
    "dpf_gaussian": (GAUSSIAN, 0),
    "dpf_laplace_double": (LAPLACE, 3),
    "dpf_gaussian_double": (GAUSSIAN, 3),
    "dpf_randomized_response": (RESPONSE, 0),
}

#: What the refinement returns, and writes into its job last. Nothing else is success: where Python raises before the
#: first line of a callback, what that returns is whatever stood in memory.
FINISHED = int.from_bytes(b"finished", "little")

#: What DuckDB's users read, in place of the words below: they know no types of Polars.
VECTOR_SCALE = "scale must be a number from 2**-960 to 2**960 in every row, for integers at most 2**60"
VECTOR_FINITE = "a value is NaN or infinite; replace it first by a fixed number"
VECTOR_CATEGORIES = (
    "the categories must be the same in every row: a number from 2 to 2**31, or a list of two or more strings"
)
VECTOR_EPSILON = "epsilon must be the same number in every row, from 1e-18 to 1e6"
VECTOR_MEMORY = "not enough memory"
VECTOR_OTHER = "it failed"

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
    "scale must be whole numbers that float64 holds; round it up and write .cast(pl.Float64)",
    "the plugin was called in a way that this version of Polars does not know",
    VECTOR_CATEGORIES,
    VECTOR_EPSILON,
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
    SCALE_INEXACT,
    PROTOCOL,
    CATEGORIES,
    EPSILON,
) = range(len(ERRORS))


# Stamp of all kernel sources (scripts/stamp_kernels.py): 80018a2d62413b73
