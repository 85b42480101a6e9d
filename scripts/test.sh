#!/bin/sh
# Sets up a virtual environment and runs everything that must hold: style, types, stamps, tests, doctests, and the
# kernels once more with bounds checked. Every step is run, whatever the others did; those that failed are named at
# the end, and the exit code is 1. Needs only Python (3.11 or later) and pip.
#
#   sh scripts/test.sh            all of it
#   sh scripts/test.sh ARGS       only pytest, with these arguments
#
# Ledgers in PostgreSQL are tested against a real server, and releases by Spark with a real Spark, which needs Java.
# Where they are missing, root and apt-get install them; DPFAST_TEST_POSTGRESQL=0 and DPFAST_TEST_SPARK=0 turn off both
# the installation and the tests.
set -eu
cd "$(dirname "$0")/.."
python=${PYTHON:-python3}
[ -x .venv-test/bin/python ] || "$python" -m venv .venv-test
.venv-test/bin/python -m pip install --quiet --disable-pip-version-check -e '.[test,demo]'
bin=.venv-test/bin
# install WHAT PACKAGE: with apt-get, where we may.
install() {
    if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
        (timeout 1200 sh -c "apt-get -qq update && DEBIAN_FRONTEND=noninteractive apt-get -qq install -y $2" \
            >/dev/null 2>&1) || echo "$1 could not be installed; its tests will be skipped"
    fi
}
if [ "${DPFAST_TEST_POSTGRESQL:-1}" != 0 ] &&
    ! command -v initdb >/dev/null && ! ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1; then
    install PostgreSQL postgresql
fi
if [ "${DPFAST_TEST_SPARK:-1}" != 0 ]; then
    command -v java >/dev/null || install Java default-jre-headless
    # Half a gigabyte, for the tests of one integration: only where they can run.
    if command -v java >/dev/null; then
        $bin/python -m pip install --quiet --disable-pip-version-check -e '.[spark]' ||
            echo "PySpark could not be installed; its tests will be skipped"
    fi
fi
if [ $# -gt 0 ]; then
    exec $bin/python -m pytest "$@"
fi

failed=
# step NAME COMMAND...: runs the command, and remembers the name if it fails.
step() {
    name=$1
    shift
    "$@" || failed="$failed, $name"
}

step "ruff check" $bin/ruff check .
step "ruff format" $bin/ruff format --check .
step mypy $bin/mypy
step "stamps of kernels" $bin/python scripts/stamp_kernels.py --check
# Numba checks no bounds by default: the kernels' tests once more with an index checked at every access.
checked=$(mktemp -d)
trap 'rm -rf "$checked"' EXIT
step "tests with bounds checked" env NUMBA_BOUNDSCHECK=1 NUMBA_CACHE_DIR="$checked" \
    $bin/python -m pytest -n auto --dist loadfile -m 'not statistical' \
    tests/noise/test_bad_input.py tests/test_aggregation.py
# A file is one worker's: what its tests share, compiled kernels above all, is made once. In the order of conftest.py.
step "tests" $bin/python -m pytest -n auto --dist loadfile --no-loadscope-reorder --doctest-modules dpfast tests
[ -z "$failed" ] || { echo "failed: ${failed#, }"; exit 1; }
