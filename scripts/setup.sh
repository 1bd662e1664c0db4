#!/bin/sh
# Makes .venv in this checkout hold exactly the locked packages and gpudiag itself.
#   sh scripts/setup.sh run    what gpudiag needs to run
#   sh scripts/setup.sh dev    that, and what its tests and checks need
# Needs Python 3.11 or newer and pip (its own or the system's); no root, nothing outside the checkout but pip's cache.
# Set PYTHON to choose an interpreter. Repeating it is free: it returns at once when nothing has changed.
set -eu
CDPATH= cd "$(dirname "$0")/.."

what=${1:-run}
case "$what" in
run) lock=requirements.lock ;;
dev) lock=requirements-dev.lock ;;
*) echo "usage: sh scripts/setup.sh [run|dev]" >&2; exit 2 ;;
esac

# Settings of the caller's shell that would send packages elsewhere or bring foreign ones in.
unset PYTHONPATH PYTHONHOME PIP_TARGET PIP_PREFIX PIP_REQUIRE_VIRTUALENV VIRTUAL_ENV
export PIP_USER=0 PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_ROOT_USER_ACTION=ignore PIP_NO_INPUT=1

new_enough() { "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; }

# The folder is part of the state: an editable install in a moved checkout would import the old one.
state="$PWD $(cksum requirements.lock requirements-dev.lock pyproject.toml src/gpudiag/__init__.py | tr '\n' ' ')"
python=.venv/bin/python
installed() { [ -f ".venv/.installed-$1" ] && [ "$(cat ".venv/.installed-$1")" = "$state" ]; }
# The lock for development holds the other one, so what serves development serves running too.
if new_enough "$python" && { installed "$what" || installed dev; }; then exit 0; fi

if ! new_enough "$python" || ! "$python" -c 'import pip' 2>/dev/null; then
    found=
    for candidate in ${PYTHON:-} python3 python3.14 python3.13 python3.12 python3.11 python; do
        if new_enough "$candidate"; then found=$candidate; break; fi
    done
    if [ -z "$found" ]; then
        echo "gpudiag needs Python 3.11 or newer, and none is on the PATH: install one, or set PYTHON to its path." >&2
        exit 1
    fi
    echo "Making .venv with $("$found" --version) (once)." >&2
    rm -rf .venv
    # Some distributions ship venv without ensurepip; the system's pip (22.3 or newer) can then fill the environment.
    if ! "$found" -m venv .venv >/dev/null 2>&1; then
        rm -rf .venv
        "$found" -m venv --without-pip .venv
        pin=$(grep -h '^pip==' requirements.lock requirements-dev.lock | cut -d' ' -f1)
        if ! "$found" -m pip --python "$python" install -qq "$pin" && ! pip --python "$python" install -qq "$pin"; then
            rm -rf .venv
            echo "gpudiag needs pip 22.3 or newer: install python3-venv or a newer pip, then run this again." >&2
            exit 1
        fi
    fi
fi

echo "Installing the packages of $lock into .venv (once; about a minute)." >&2
for stage in run dev; do installed "$stage" || rm -f ".venv/.installed-$stage"; done
"$python" -m pip install -qq --require-hashes -r "$lock" >&2
# Everything that the build needs is installed and locked, so nothing unpinned is fetched here.
"$python" -m pip install -qq --no-deps --no-build-isolation --editable . >&2
printf '%s' "$state" >".venv/.installed-$what"
