"""One run of another library's mechanism, in an interpreter of its own; benchmarks/census_peers.py starts it.

    python census_adapters.py NAME MECHANISMS REQUEST CODES ANSWER

REQUEST is a .json with the ``sizes`` of columns, ``epsilon``, ``delta``, ``megabytes``, and the ``sets`` of columns of
the workload; CODES a .npy of the records, a row for each column. The synthetic records are written to ANSWER, and the
seconds that they took, of a clock and of processors (those of child processes included), are the last line printed.
No package of this project has to be there.
"""

from __future__ import annotations

import inspect
import json
import os
import sys
import time
from typing import Any

import numpy as np

#: Rounds of AIM after which JAX forgets what it compiled.
_ROUNDS_KEPT = 4


def _mbi_data(request: dict[str, Any], codes: np.ndarray) -> Any:
    from mbi import Dataset, Domain

    names = [f"a{place}" for place in range(len(request["sizes"]))]
    domain = Domain.fromdict(dict(zip(names, request["sizes"], strict=True)))
    return Dataset({name: column.astype(int) for name, column in zip(names, codes, strict=True)}, domain)


def _codes_of(data: Any) -> np.ndarray:
    return np.array([np.asarray(data.data[name]) for name in data.domain])


def aim(request: dict[str, Any], codes: np.ndarray) -> np.ndarray:
    from aim import AIM
    from mbi import estimation

    of_peer = estimation.Estimator.estimate
    if "potentials" not in inspect.signature(of_peer).parameters:
        # The mechanism calls what mbi 2.0.0 names otherwise.
        def estimate(self: Any, *given: Any, potentials: Any = None, **more: Any) -> Any:
            return of_peer(self, *given, warm_start=potentials, **more)

        estimation.Estimator.estimate = estimate
    workload = [(tuple(f"a{place}" for place in held), 1.0) for held in request["sets"]]
    # Its megabytes are 2**20 bytes.
    size = request["megabytes"] * 1e6 / 2**20
    mechanism = AIM(request["epsilon"], request["delta"], max_model_size=size)
    _watch(mechanism, request["progress"])
    _, made = mechanism.run(_mbi_data(request, codes), workload)
    return _codes_of(made)


def _watch(mechanism: Any, progress: str | None) -> None:
    """Have each round of AIM tell how far it came, and keep JAX from compiling a program for every shape.

    What AIM asks of a model before it chooses is summed by NumPy, and what was compiled is thrown away now and then:
    the memory maps of a process would run out before AIM ends. How a model is fitted stays as it is.
    """
    import jax
    from census_marginals import SummedModel

    choose, rounds, spent = mechanism.worst_approximated, 0, 0.0

    def chosen(candidates: Any, answers: Any, model: Any, epsilon: float, sigma: float) -> Any:
        nonlocal rounds, spent
        if rounds % _ROUNDS_KEPT == 0:
            jax.clear_caches()
        rounds += 1
        plain = {held: np.asarray(counts) for held, counts in answers.items()}
        spent += epsilon**2 / 8 + 0.5 / sigma**2
        found = choose(candidates, plain, SummedModel(model), epsilon, sigma)
        if progress:
            with open(progress, "a") as file:
                file.write(
                    f"round {rounds}: {found}, {spent / mechanism.rho:.4f} of the budget beyond single columns, "
                    f"{time.process_time():.0f} processor seconds\n"
                )
        return found

    mechanism.worst_approximated = chosen


def mst(request: dict[str, Any], codes: np.ndarray) -> np.ndarray:
    from mbi import Domain
    from mst import MST

    if not hasattr(Domain, "attrs"):
        # The mechanism calls what mbi 2.0.0 names otherwise.
        Domain.attrs = property(lambda domain: domain.attributes)
    return _codes_of(MST(_mbi_data(request, codes), request["epsilon"], request["delta"]))


def _dpmm(model: Any, request: dict[str, Any], codes: np.ndarray, **more: Any) -> np.ndarray:
    import pandas as pd

    names = [f"a{place}" for place in range(len(request["sizes"]))]
    frame = pd.DataFrame({name: column.astype(int) for name, column in zip(names, codes, strict=True)})
    domain = dict(zip(names, request["sizes"], strict=True))
    made = model(domain=domain, epsilon=request["epsilon"], delta=request["delta"], n_jobs=1, **more)
    made.fit(frame)
    return made.generate(n_records=len(frame))[names].to_numpy().T.astype(np.int64)


def dpmm_aim(request: dict[str, Any], codes: np.ndarray) -> np.ndarray:
    from dpmm.models.aim import AIMGM

    return _dpmm(AIMGM, request, codes, max_model_size=request["megabytes"] * 1e6 / 2**20)


def dpmm_mst(request: dict[str, Any], codes: np.ndarray) -> np.ndarray:
    from dpmm.models.mst import MSTGM

    return _dpmm(MSTGM, request, codes)


def _smartnoise(synthesizer: Any, request: dict[str, Any], codes: np.ndarray) -> np.ndarray:
    import pandas as pd
    from snsynth.transform import LabelTransformer, TableTransformer

    sizes = request["sizes"]
    names = [f"a{place}" for place in range(len(sizes))]
    # What each column may hold is public: it is shown once, so that nothing is learned from the records.
    possible = np.arange(max(sizes))[:, None] % np.array(sizes)
    transformer = TableTransformer([LabelTransformer(nullable=False) for _ in sizes])
    transformer.fit(pd.DataFrame(possible, columns=names))
    frame = pd.DataFrame({name: column.astype(int) for name, column in zip(names, codes, strict=True)})
    synthesizer.fit(frame, transformer=transformer)
    return synthesizer.sample(len(frame))[names].to_numpy().T.astype(np.int64)


def smartnoise_aim(request: dict[str, Any], codes: np.ndarray) -> np.ndarray:
    from snsynth.aim import AIMSynthesizer

    size = request["megabytes"] * 1e6 / 2**20
    return _smartnoise(AIMSynthesizer(request["epsilon"], request["delta"], max_model_size=size), request, codes)


def smartnoise_mst(request: dict[str, Any], codes: np.ndarray) -> np.ndarray:
    from snsynth.mst import MSTSynthesizer

    return _smartnoise(MSTSynthesizer(request["epsilon"], request["delta"]), request, codes)


ADAPTERS = {
    "AIM (mbi)": aim,
    "MST (mbi)": mst,
    "AIM (dpmm)": dpmm_aim,
    "MST (dpmm)": dpmm_mst,
    "AIM (smartnoise)": smartnoise_aim,
    "MST (smartnoise)": smartnoise_mst,
}


def _processor_seconds() -> float:
    """Return the seconds of processors that this process and its children took."""
    return sum(os.times()[:4])


def main(name: str, mechanisms: str, request_path: str, codes_path: str, answer_path: str) -> None:
    sys.path.insert(0, mechanisms)
    with open(request_path) as file:
        request = json.load(file)
    codes = np.load(codes_path)
    start, used = time.perf_counter(), _processor_seconds()
    made = ADAPTERS[name](request, codes)
    seconds, used = time.perf_counter() - start, _processor_seconds() - used
    np.save(answer_path, made)
    print(f"\n{seconds} {used}")


if __name__ == "__main__":
    main(*sys.argv[1:])
