#!/bin/sh
# Renews requirements.lock and requirements-dev.lock from pyproject.toml; needs uv. Options go to uv, for example --upgrade.
# The locks hold for every supported Python and platform; pip alone installs them (scripts/setup.sh).
set -eu
CDPATH= cd "$(dirname "$0")/.."
compile() {
    UV_CUSTOM_COMPILE_COMMAND="sh scripts/lock.sh" uv pip compile --quiet --universal --python-version 3.11 \
        --generate-hashes --no-annotate --no-emit-index-url --no-emit-find-links --default-index https://pypi.org/simple "$@"
}
all=$(mktemp)
trap 'rm -f "$all"' EXIT
# What uv finds in the file that it writes, it keeps: both locks together are what was locked last.
grep -hv '^-r ' requirements.lock requirements-dev.lock >"$all"
compile --group dev "$@" --output-file "$all" pyproject.toml
compile --group build --constraint "$all" "$@" --output-file requirements.lock pyproject.toml
# The packages that gpudiag runs with stand once.
{
    sed '/^[^#]/,$d' "$all"
    echo "-r requirements.lock"
    awk '/^#/ { next } NR == FNR { run[$0] = 1; next } /^[^ ]/ { kept = !($0 in run) } kept' requirements.lock "$all"
} >requirements-dev.lock
