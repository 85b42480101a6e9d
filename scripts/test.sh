#!/bin/sh
# Sets up virtual environments and runs everything that must hold: style, types, stamps, tests, doctests, the kernels
# once more with bounds checked, quick benchmarks, and tests with the lowest versions of all packages. Every step is
# run, whatever the others did; at the end stands how long each took, and which failed, and then the exit code is 1.
# Types are checked, and benchmarks run, beside another step that leaves a core: what they say is shown when that ends.
# Needs only Python (3.11 or later) and pip.
#
#   sh scripts/test.sh            all of it
#   sh scripts/test.sh ARGS       only pytest, with these arguments
#
# The last step has packages of the lowest versions that pyproject.toml allows, in a virtual environment of their own,
# and runs what these versions decide: data of every library, file and database, as they are read, released and shown,
# noise, accountants, attacks and ledgers.
# Where they cannot be installed, it fails. They need the lowest Python, too: several have no wheels for a later one.
# Where there is no python3.11, the step is not run, and the last line says so.
#
# DPFAST_TEST_VERSIONS=lowest runs this step alone, or pytest with these versions and ARGS;
# DPFAST_TEST_VERSIONS=newest runs all but this step.
#
# Ledgers in PostgreSQL are tested against a real server, and releases by Spark with a real Spark, which needs Java.
# Where they are missing, root and apt-get install them; DPFAST_TEST_POSTGRESQL=0 and DPFAST_TEST_SPARK=0 turn off both
# the installation and the tests. Pages are opened in Chromium, which DPFAST_TEST_CHROMIUM=0 turns off likewise.
set -eu
cd "$(dirname "$0")/.."
began=$(date +%s)
python=${PYTHON:-python3}
versions=${DPFAST_TEST_VERSIONS:-both}
case $versions in
both | newest | lowest) ;;
*)
    echo "DPFAST_TEST_VERSIONS is $versions; write lowest or newest, or leave it out for both" >&2
    exit 2
    ;;
esac
# is_lowest PYTHON: whether it is there, and the one that the lowest versions of all packages have wheels for.
is_lowest() {
    command -v "$1" >/dev/null && "$1" -c 'import sys; sys.exit(sys.version_info[:2] != (3, 11))'
}
lowest=$python
is_lowest "$lowest" || lowest=python3.11
venv=.venv-test
constraints=
if [ $versions = lowest ]; then
    is_lowest "$lowest" || { echo "the lowest versions need Python 3.11: set PYTHON to it" >&2; exit 1; }
    python=$lowest
    venv=.venv-lowest
    constraints="--constraint $venv/constraints.txt"
    # Spark is half a gigabyte, and its tests are not among these. Kernels of another Numba have a place of their own.
    export DPFAST_TEST_SPARK=0 DPFAST_TEST_CHROMIUM=0 NUMBA_CACHE_DIR="$PWD/$venv/kernels"
fi
[ -x $venv/bin/python ] || "$python" -m venv $venv
bin=$venv/bin
[ -z "$constraints" ] || $bin/python scripts/lowest_versions.py >$venv/constraints.txt
$bin/python -m pip install --quiet --disable-pip-version-check $constraints -e '.[test,demo]'
# What builds the documentation; without it, that test is skipped.
[ -n "$constraints" ] || $bin/python -m pip install --quiet --disable-pip-version-check -e '.[docs]' ||
    echo "the docs extra could not be installed; the documentation will not be built"
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
if [ "${DPFAST_TEST_CHROMIUM:-1}" != 0 ] && ! command -v chromium >/dev/null; then
    install Chromium chromium
fi
if [ "${DPFAST_TEST_SPARK:-1}" != 0 ]; then
    command -v java >/dev/null || install Java default-jre-headless
    # Half a gigabyte, for the tests of one integration: only where they can run.
    if command -v java >/dev/null; then
        $bin/python -m pip install --quiet --disable-pip-version-check -e '.[spark]' ||
            echo "PySpark could not be installed; its tests will be skipped"
    fi
fi
# Of a run's time two fifths were waited for: for the disk, or for processes. So there is a worker more than cores.
workers=$($bin/python -c 'import os; print((os.cpu_count() or 1) + 1)')
if [ -n "$constraints" ] && [ $# = 0 ]; then
    set -- -n "$workers" --dist loadfile --no-loadscope-reorder \
        tests/test_lowest_versions.py tests/release/test_every_type.py \
        tests/release/test_release_frame.py tests/sources tests/rows tests/test_casts.py tests/test_columns.py \
        tests/test_files.py tests/test_sources.py tests/test_tables.py tests/answering/test_choosing.py \
        tests/accounting/test_dp_accounting.py tests/attacks tests/cli/test_charts.py tests/cli/test_hostile_charts.py \
        tests/cli/test_commands.py tests/cli/test_selections.py tests/integrations/test_engines.py tests/integrations/test_namespace.py \
        tests/integrations/test_plugin_responses.py tests/integrations/test_rows.py \
        tests/integrations/test_serializing.py tests/integrations/test_sql_refusals.py \
        tests/ledger/test_ledger_postgresql.py tests/noise/test_golden_facts.py
fi
# Where Python may keep no bytecode, every worker and every process that a test starts compiles all sources anew.
unset PYTHONDONTWRITEBYTECODE
if [ $# -gt 0 ]; then
    exec $bin/python -m pytest "$@"
fi

failed=
times=
kept=$(mktemp -d)
running=
trap '[ -z "$running" ] || kill "$running" || :; rm -rf "$kept"' EXIT
trap 'exit 130' INT TERM
# took NAME: remembers how many seconds have passed since the step before.
took() {
    now=$(date +%s)
    times="$times$(printf '%5d s  %s' $((now - before)) "$1")
"
    before=$now
}
# step NAME COMMAND...: runs the command, and remembers the name if it fails.
step() {
    name=$1
    shift
    "$@" || failed="$failed, $name"
    took "$name"
}
# beside COMMAND...: runs a command that takes one core while the next step leaves one; `told` says what became of it.
beside() {
    (
        start=$(date +%s)
        "$@" >"$kept/said" 2>&1 &
        trap "kill $!" TERM
        wait $! && code=0 || code=$?
        echo "$code $(($(date +%s) - start))" >"$kept/code"
    ) &
    running=$!
}
# told NAME: waits for the command that runs beside, shows all that it said, and remembers the name if it failed.
told() {
    wait "$running" || :
    running=
    cat "$kept/said"
    read -r code seconds <"$kept/code"
    [ "$code" = 0 ] || failed="$failed, $1"
    times="$times$(printf '%5d s  %s' "$seconds" "$1")
"
    before=$(date +%s)
}

before=$began
took "installing"
step "ruff check" $bin/ruff check .
step "ruff format" $bin/ruff format --check .
step "stamps of kernels" $bin/python scripts/stamp_kernels.py --check
beside $bin/mypy
# This test compiles most kernels of noise anew, whatever the cache has, and leaves them there. Among all tests workers
# would compile the same kernels at the same time; when it comes again there, it finds what it compiled.
step "compiled code of kernels" $bin/python -m pytest tests/noise/test_compiled_code.py
told mypy
# Numba checks no bounds by default: tests of kernels once more, with every index checked. What is compiled so has a
# cache of its own, which the next run finds.
step "tests with bounds checked" env NUMBA_BOUNDSCHECK=1 NUMBA_CACHE_DIR="$PWD/$venv/kernels-with-bounds" \
    $bin/python -m pytest -n auto --dist loadfile -m 'not statistical' \
    tests/noise/test_bad_input.py tests/test_aggregation.py
# A file is one worker's: what its tests share, compiled kernels above all, is made once. In the order of conftest.py.
step "tests" $bin/python -m pytest -n "$workers" --dist loadfile --no-loadscope-reorder --doctest-modules dpfast tests
# Every suite of benchmarks runs, on little data; nothing is held to be fast.
if [ $versions = both ] && is_lowest "$lowest"; then
    beside $bin/python -m dpfast bench --quick
    step "tests with the lowest versions" env DPFAST_TEST_VERSIONS=lowest PYTHON="$lowest" sh scripts/test.sh
    told "quick benchmarks"
else
    step "quick benchmarks" $bin/python -m dpfast bench --quick
    [ $versions = newest ] || echo "not run: tests with the lowest versions, which need python3.11"
fi
before=$began
took "all of it"
printf '%s' "$times"
[ -z "$failed" ] || { echo "failed: ${failed#, }"; exit 1; }
