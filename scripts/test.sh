#!/bin/sh
# Sets up a virtual environment and runs everything that must hold: style, types, stamps, tests, doctests, and the
# kernels once more with bounds checked. Needs only Python (3.11 or later) and pip.
#
#   sh scripts/test.sh            all of it
#   sh scripts/test.sh ARGS       only pytest, with these arguments
set -eu
cd "$(dirname "$0")/.."
python=${PYTHON:-python3}
[ -x .venv-test/bin/python ] || "$python" -m venv .venv-test
.venv-test/bin/python -m pip install --quiet --disable-pip-version-check -e '.[test,demo]'
bin=.venv-test/bin
if [ $# -gt 0 ]; then
    exec $bin/python -m pytest "$@"
fi
$bin/ruff check .
$bin/ruff format --check .
$bin/mypy
$bin/python scripts/stamp_kernels.py --check
$bin/python -m pytest --doctest-modules dpfast tests
# Numba checks no bounds by default: the kernels' tests once more with an index checked at every access.
checked=$(mktemp -d)
trap 'rm -rf "$checked"' EXIT
NUMBA_BOUNDSCHECK=1 NUMBA_CACHE_DIR="$checked" $bin/python -m pytest -m 'not statistical' tests/noise/test_bad_input.py tests/test_aggregation.py
