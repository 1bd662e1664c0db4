#!/bin/sh
# Runs all tests:  sh scripts/test.sh [OPTIONS of pytest]
set -eu
CDPATH= cd "$(dirname "$0")/.."
sh scripts/setup.sh dev
export XDG_CACHE_HOME="$PWD/.venv/cache"
unset PYTHONPATH PYTHONHOME PYTHONDONTWRITEBYTECODE  # compiled modules are kept: each start compiles all else
exec .venv/bin/python -m pytest --numprocesses=auto --dist=worksteal "$@"
