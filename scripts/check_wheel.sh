#!/bin/sh
# Builds the source distribution and, from it, the wheel; looks into both; and uses the wheel in an environment that has
# nothing but what the wheel asks for.
#
#   sh scripts/check_wheel.sh           leaves both in dist/; with the interpreter in $PYTHON (python3)
set -eu
cd "$(dirname "$0")/.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"${PYTHON:-python3}" -m venv "$work/build"
"$work/build/bin/python" -m pip install --quiet --disable-pip-version-check build 'twine>=6.1'
rm -rf dist
"$work/build/bin/python" -m build --outdir dist . >"$work/log" 2>&1 || { cat "$work/log" >&2; exit 1; }
"$work/build/bin/python" -m twine check --strict dist/*
"$work/build/bin/python" scripts/look_into_wheel.py dist
"${PYTHON:-python3}" -m venv "$work/empty"
"$work/empty/bin/python" -m pip install --quiet --disable-pip-version-check dist/*.whl
cd "$work"
NUMBA_CACHE_DIR="$work/kernels" "$work/empty/bin/python" -I "$OLDPWD/scripts/use_wheel.py"
"$work/empty/bin/dpfast" --version
