"""Build the documentation site and check its links:  python -m evaluation.site [--external] [--output FOLDER]

A warning of MkDocs, a dead link inside the site, or a file that it would load from elsewhere fails the build. Addresses
outside are listed by --external, each with its pages, and are not visited.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from pathlib import Path

from evaluation.site import links

ROOT = Path(__file__).resolve().parents[2]


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--output", type=Path, default=ROOT / "build" / "site", help="where the site is written")
    parser.add_argument("--external", action="store_true", help="list the addresses outside the site")
    args = parser.parse_args()
    site = args.output.resolve()
    # Material for MkDocs announces a successor in every build; here a warning is an error.
    quiet = {**os.environ, "NO_MKDOCS_2_WARNING": "1", "PYTHONWARNINGS": "ignore"}
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(site)]
    done = subprocess.run(command, cwd=ROOT, env=quiet, stderr=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        print(done.stderr, file=sys.stderr)
        return done.returncode
    pages = links.read(site)
    found = list(links.dead(site, pages))
    for fault in found:
        print(fault, file=sys.stderr)
    if args.external:
        for address, names in links.external(site, pages).items():
            print(address, *names, sep="\n    ")
    size = sum(path.stat().st_size for path in site.rglob("*") if path.is_file()) / 1e6
    print(f"{len(pages)} pages, {size:.1f} MB, {len(found)} dead links", file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
