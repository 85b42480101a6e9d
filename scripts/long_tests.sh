#!/bin/sh
# Runs the tests that take minutes: every 32-bit word, a million exact samples a kernel, fits at 10**8 samples.
#
#   sh scripts/long_tests.sh            all of them, with the interpreter in $PYTHON (python3)
#   sh scripts/long_tests.sh ARGS       more arguments for pytest
set -eu
cd "$(dirname "$0")/.."
exec "${PYTHON:-python3}" -m pytest --long -m long -s tests "$@"
