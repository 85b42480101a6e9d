"""How a public function is called rightly: the start for every wrong call."""

from __future__ import annotations

import dataclasses
import importlib
import inspect
import types
import typing
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dpfast.arguments import Declaration


@dataclass(frozen=True)
class Call:
    """One public function, and arguments that it takes.

    ``given`` makes them afresh, by name. ``skipped`` are parameters that stand for others, such as ``**queries``.
    """

    name: str
    function: Callable[..., Any]
    given: Callable[[], dict[str, Any]]
    skipped: frozenset[str] = frozenset()

    @property
    def signature(self) -> inspect.Signature:
        return inspect.signature(self.function)

    @property
    def parameters(self) -> list[str]:
        """The names of all parameters that a user writes."""
        unnamed = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
        return [
            name
            for name, parameter in self.signature.parameters.items()
            if parameter.kind not in unnamed and name != "self" and name not in self.skipped
        ]

    def hint(self, name: str) -> Any:
        """The type in the signature, with what stands beside it."""
        function = self.function.__init__ if inspect.isclass(self.function) else self.function
        while isinstance(function, (types.MethodType, staticmethod)):
            function = function.__func__
        function = inspect.unwrap(function)
        # One by one: what is returned may be of a library that is not imported before it is used.
        annotated = types.SimpleNamespace(__annotations__={name: function.__annotations__.get(name)})
        return typing.get_type_hints(annotated, function.__globals__, include_extras=True)[name]

    def declaration(self, name: str) -> Declaration | None:
        """The declaration in the signature."""
        return next((part for part in _parts(self.hint(name)) if isinstance(part, Declaration)), None)

    def __call__(self, **changed: Any) -> Any:
        """Call it with some arguments changed."""
        given = {**self.given(), **changed}
        positional = [
            given.pop(name)
            for name, parameter in self.signature.parameters.items()
            if parameter.kind is inspect.Parameter.POSITIONAL_ONLY and name in given
        ]
        return self.function(*positional, **given)


def _parts(hint: Any) -> list[Any]:
    """Return what stands beside a type, also inside a union."""
    if isinstance(hint, dataclasses.InitVar):
        hint = hint.type
    beside = list(getattr(hint, "__metadata__", ()))
    return beside + [part for inner in typing.get_args(hint) for part in _parts(inner)]


def every_call() -> list[Call]:
    """Return the right calls of all modules beside this one."""
    names = sorted(path.stem for path in Path(__file__).parent.glob("calls_of_*.py"))
    return [call for name in names for call in importlib.import_module(f"{__package__}.{name}").CALLS]
