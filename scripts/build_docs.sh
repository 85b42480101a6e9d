#!/bin/sh
# Builds the documentation into site/, in a virtual environment of its own, with warnings as errors.
#
#   sh scripts/build_docs.sh            with the interpreter in $PYTHON (python3)
set -eu
cd "$(dirname "$0")/.."
venv=.venv-docs
[ -x $venv/bin/python ] || "${PYTHON:-python3}" -m venv $venv
$venv/bin/python -m pip install --quiet --disable-pip-version-check -e '.[docs]'
$venv/bin/python -m sphinx -W --keep-going -q docs site
echo "site/index.html"
