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
# Ledgers in PostgreSQL are tested against a real server: put there where root may, else those tests are skipped.
if ! command -v initdb >/dev/null && ! ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1; then
    if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
        (timeout 300 sh -c 'apt-get -qq update && DEBIAN_FRONTEND=noninteractive apt-get -qq install -y postgresql' \
            >/dev/null 2>&1) || echo "PostgreSQL could not be installed; its tests will be skipped"
    fi
fi
if [ $# -gt 0 ]; then
    exec $bin/python -m pytest "$@"
fi
$bin/ruff check .
$bin/ruff format --check .
$bin/mypy
$bin/python scripts/stamp_kernels.py --check
# A file is one worker's: what its tests share, compiled kernels above all, is made once.
$bin/python -m pytest -n auto --dist loadfile --doctest-modules dpfast tests
# Numba checks no bounds by default: the kernels' tests once more with an index checked at every access.
checked=$(mktemp -d)
trap 'rm -rf "$checked"' EXIT
NUMBA_BOUNDSCHECK=1 NUMBA_CACHE_DIR="$checked" $bin/python -m pytest -m 'not statistical' tests/noise/test_bad_input.py tests/test_aggregation.py
