"""The process of `dpfast.bench.worker`: ``python -m dpfast.bench`` measures the cases that it reads of."""

from __future__ import annotations

import dataclasses
import faulthandler
import json
import os
import sys
from typing import Any

from dpfast.bench.cases import Measured, Wish
from dpfast.bench.finding import suite_module
from dpfast.bench.rounds import told_error
from dpfast.bench.running import cases_of


def serve() -> None:
    """Measure what standard input asks for, a line of JSON each, until it ends."""
    faulthandler.enable()
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what contestants print is no answer

    def answer(said: dict[str, Any]) -> None:
        answers.write(json.dumps(said) + "\n")
        answers.flush()

    for line in sys.stdin:
        asked = json.loads(line)
        wish = Wish(is_quick=asked["is_quick"], largest=asked["largest"], tell=lambda text: answer({"told": text}))
        try:
            case = next(case for case in cases_of([asked["suite"]], wish) if case.name == asked["name"])
            measured = list(case.measure(wish))
        except KeyboardInterrupt:
            return
        except BaseException as error:  # also sys.exit() in a library
            measured = [Measured("dpfast", 0, (), failure="raised", note=told_error(error))]
        failed = suite_module("contestants").FAILED
        answer({"measured": [dataclasses.asdict(one) for one in measured], "failed": failed})


if __name__ == "__main__":
    serve()
