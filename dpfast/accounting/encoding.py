"""Events as text, for ledgers: JSON with the event's name and its parameters, floats to the last bit."""

from __future__ import annotations

import json
from dataclasses import fields
from typing import Any

from dpfast.accounting.events import Event
from dpfast.accounting.facts import FACTS
from dpfast.errors import ParameterError

__all__ = ["from_text", "to_text"]

_KINDS: dict[str, Any] = {kind.__name__: kind for kind in FACTS}


def _plain(value: Any) -> Any:
    if isinstance(value, tuple):
        return [_plain(part) for part in value]
    if type(value).__name__ in _KINDS:
        return {"kind": type(value).__name__} | {
            field.name: _plain(getattr(value, field.name)) for field in fields(value)
        }
    return value


def _fact(value: Any) -> Any:
    if isinstance(value, list):
        return tuple(_fact(part) for part in value)
    if isinstance(value, dict):
        named = dict(value)
        return _KINDS[named.pop("kind")](**{name: _fact(part) for name, part in named.items()})
    return value


def to_text(event: Event) -> str:
    """Return an event as one line of JSON; `from_text` gives back an equal one.

    Examples
    --------
    >>> from dpfast.accounting.events import Laplace
    >>> to_text(Laplace(10.0))
    '{"kind": "Laplace", "scale": 10.0, "sensitivity": 1.0}'

    """
    return json.dumps(_plain(event))


def from_text(text: str) -> Event:
    """Return the event of a text.

    Raises
    ------
    ParameterError
        If the text denotes no event.

    Examples
    --------
    >>> from_text('{"kind": "Pure", "epsilon": 0.1}')
    Pure(epsilon=0.1)

    """
    try:
        event: Event = _fact(json.loads(text))
    except (ValueError, KeyError, TypeError):
        raise ParameterError("text", text, "an event as dpfast wrote it") from None
    return event
