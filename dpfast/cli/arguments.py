"""What is written on the command line -> the arguments of `dpfast.plan`."""

from __future__ import annotations

import math
import os
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dpfast.cli.asking import CSV_SUFFIXES, FILE_SUFFIXES, Asked, read_queries, shortened
from dpfast.cli.errors import CommandError, FileTroubleError
from dpfast.errors import ParameterError

if TYPE_CHECKING:
    import polars as pl

    from dpfast.accounting.privacy_unit import Neighbors
    from dpfast.queries import Bins
    from dpfast.releases.plan import Plan
    from dpfast.releases.request import AskedMechanism, AskedRule
    from dpfast.releases.splitting import Splitting

__all__ = ["Request", "draw_plan", "read_schema"]


@dataclass(frozen=True)
class Request(Asked):
    """The arguments that `dpfast release` and `dpfast explain` share, as they were written."""

    by: tuple[str, ...]
    bins: tuple[str, ...]
    unit: str | None
    max_groups: int | None
    max_rows: int | None
    epsilon: float | None
    rho: float | None
    delta: float
    keys: str | None
    neighbors: Neighbors
    mechanism: AskedMechanism
    key_selection: AskedRule
    split: str
    population: int | None
    dataset: str | None
    schema: str | None

    @property
    def dataset_name(self) -> str:
        """The name under which the ledger knows the data: by default the files as they were written."""
        return ", ".join(self.files) if self.dataset is None else self.dataset


def draw_plan(request: Request) -> Plan:
    """Return the plan that a command line asks for; only schemas and the public keys are read.

    Raises
    ------
    DpfastError
        Something on the command line does not serve.

    """
    import dpfast as dpf

    if request.epsilon is None and request.rho is None:
        raise CommandError("missing option '--epsilon'; write for example --epsilon 1")
    schema = read_schema(request.schema)
    by = _read_by(request)
    has_csv = any(path.lower().endswith(CSV_SUFFIXES) for path in request.files)
    if has_csv and schema is None:
        raise CommandError(
            "a CSV file does not know its dtypes, and guessing them would look at the data; "
            "declare the columns used: --schema carrier=str,dep_delay=float64"
        )
    queries = read_queries(request, schema)
    keys = None if request.keys is None else _read_keys(request.keys, schema)
    keys_use_schema = request.keys is not None and request.keys.lower().endswith(CSV_SUFFIXES)
    try:
        return dpf.plan(
            list(request.files),
            by,
            epsilon=request.epsilon,
            rho=request.rho,
            delta=request.delta,
            split=_read_split(request.split),
            keys=keys,
            privacy_unit=request.unit,
            max_groups=request.max_groups,
            max_rows_per_group=request.max_rows,
            neighbors=request.neighbors,
            mechanism=request.mechanism,
            key_selection=request.key_selection,
            population=request.population,
            dataset=request.dataset_name,
            schema=None if keys_use_schema and not has_csv else schema,
            workload=None,
            strategy="auto",
            **queries,
        )
    except ParameterError as error:
        if error.argument == "candidates":
            raise CommandError(f"--mode does not serve: {error}") from None
        if error.argument != "split":
            raise
        # What the library would have written instead is no option of a shell.
        raise CommandError(f"--{str(error).rpartition(';')[0]}; {_SPLIT_MEND}") from None


_SPLIT_MEND = "write for example --split count=1,fare_sum=3"


def _read_split(text: str) -> Splitting:
    """Read ``even``, ``optimal``, ``NAME=WEIGHT,...`` or ``optimal:NAME=WEIGHT,...``."""
    if text == "even":
        return "even"
    if text == "optimal":
        return "optimal"
    optimal = text.startswith("optimal:")
    weights: dict[str, float] = {}
    for entry in text.removeprefix("optimal:").split(","):
        name, equals, weight = entry.strip().rpartition("=")
        try:
            number = float(weight)
        except ValueError:
            number = math.nan
        if not equals or not name or math.isnan(number):
            raise CommandError(
                f"--split {shortened(text)} cannot be read; write even, optimal, NAME=WEIGHT,... or "
                f"optimal:NAME=WEIGHT,...; {_SPLIT_MEND}"
            )
        if name in weights:
            raise CommandError(f"--split names {name!r} twice; leave one out")
        weights[name] = number
    return ("optimal", weights) if optimal else weights


def _read_by(request: Request) -> list[str | Bins] | None:
    import dpfast as dpf

    names = [name.strip() for text in request.by for name in text.split(",")]
    if not all(names):
        raise CommandError("--by holds an empty name; write columns with commas between, for example --by carrier,dest")
    binned: dict[str, Bins] = {}
    for text in request.bins:
        column, colon, written = text.rpartition(":")
        mend = "write COLUMN:EDGE,EDGE,..., for example --bins distance:0,500,1000"
        if not colon or not column:
            raise CommandError(f"--bins {shortened(text)} cannot be read; {mend}")
        try:
            edges = [_number(edge) for edge in written.split(",")]
        except ValueError:
            raise CommandError(f"the edges of --bins {shortened(text)} are no numbers; {mend}") from None
        if len(edges) < 2 or any(not left < right for left, right in pairwise(edges)):
            raise CommandError(f"--bins {shortened(text)} needs two edges or more, increasing; {mend}")
        if column not in names:
            raise CommandError(
                f"--bins names {column!r}, which --by does not; add it: --by {','.join([*names, column])}"
            )
        if column in binned:
            raise CommandError(f"--bins names {column!r} twice; give all its edges at once")
        binned[column] = dpf.bins(column, edges)
    return [binned.get(name, name) for name in names] or None


def _number(text: str) -> float:
    try:
        return int(text)
    except ValueError:
        return float(text)


def read_schema(text: str | None) -> dict[str, Any] | None:
    """Read ``COLUMN=DTYPE,...``."""
    if text is None:
        return None
    import polars as pl

    dtypes: dict[str, Any] = {
        "str": pl.String,
        "string": pl.String,
        "cat": pl.Categorical,
        "bool": pl.Boolean,
        "date": pl.Date,
        "int": pl.Int64,
        "float": pl.Float64,
        **{str(dtype()).lower(): dtype for dtype in _numbers()},
    }
    schema: dict[str, Any] = {}
    for entry in text.split(","):
        name, equals, dtype = entry.strip().rpartition("=")
        if not equals or not name or dtype.strip().lower() not in dtypes:
            known = ", ".join(dtypes)
            raise CommandError(f"--schema {shortened(entry)} must be COLUMN=DTYPE with a dtype of {known}")
        if name in schema:
            raise CommandError(f"--schema names {name!r} twice; leave one out")
        schema[name] = dtypes[dtype.strip().lower()]
    return schema


def _numbers() -> tuple[Any, ...]:
    import polars as pl

    whole = (pl.Int8, pl.Int16, pl.Int32, pl.Int64, pl.UInt8, pl.UInt16, pl.UInt32, pl.UInt64)
    return (*whole, pl.Float32, pl.Float64)


def _read_keys(path: str, schema: dict[str, Any] | None) -> pl.DataFrame:
    """Read the public keys; in a CSV file they are strings where ``--schema`` says nothing else."""
    import polars as pl

    if not os.path.isfile(path):
        raise FileTroubleError(f"there is no file {path!r} for --keys; give a Parquet, CSV or Arrow file")
    suffix = Path(path).suffix.lower()
    try:
        if path.lower().endswith(CSV_SUFFIXES):
            return pl.read_csv(path, infer_schema=False, schema_overrides=_overrides(path, schema))
        if suffix == ".parquet":
            return pl.read_parquet(path)
        if suffix in (".arrow", ".ipc", ".feather"):
            return pl.read_ipc(path)
    except (pl.exceptions.PolarsError, OSError) as error:
        # Public keys are public: the reason may be shown.
        reason = " ".join(str(error).split())[:160]
        raise FileTroubleError(f"the keys in {path!r} cannot be read ({reason}); mend the file or --schema") from None
    raise CommandError(f"--keys {path!r} must end in one of {', '.join(FILE_SUFFIXES)}")


def _overrides(path: str, schema: dict[str, Any] | None) -> dict[str, Any]:
    import polars as pl

    columns = pl.read_csv(path, infer_schema=False, n_rows=0).columns
    return {name: dtype for name, dtype in (schema or {}).items() if name in columns}
