#!/bin/sh
# Renews requirements.lock and requirements-dev.lock from pyproject.toml; needs uv. Options go to uv, for example --upgrade.
# The locks hold for every supported Python and platform; pip alone installs them (scripts/setup.sh).
set -eu
CDPATH= cd "$(dirname "$0")/.."
compile() {
    UV_CUSTOM_COMPILE_COMMAND="sh scripts/lock.sh" uv pip compile --quiet --universal --python-version 3.11 \
        --generate-hashes --no-annotate --no-emit-index-url --no-emit-find-links --default-index https://pypi.org/simple "$@"
}
compile --group dev "$@" --output-file requirements-dev.lock pyproject.toml
compile --group build --constraint requirements-dev.lock "$@" --output-file requirements.lock pyproject.toml
