#!/bin/sh
# Explains a bundled real capture, or the file given:  sh scripts/demo.sh [FILE] [OPTIONS of `gpudiag explain`]
set -eu
here=$(CDPATH= cd "$(dirname "$0")/.." && pwd)
sh "$here/scripts/setup.sh" run
export XDG_CACHE_HOME="$here/.venv/cache"  # the demonstration leaves nothing outside the checkout
if [ $# -eq 0 ]; then set -- "$here/fixtures/captures/item_every_stage/slow.sqlite.xz"; fi
exec "$here/.venv/bin/gpudiag" explain "$@"
