"""What the command line says of where ranks are read."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from gpudiag.cli import main


@pytest.mark.parametrize(("address", "warned"), [("tcp://host:8786", True), ("tls://host:8786", False)])
def test_a_scheduler_that_anybody_can_reach_is_warned_of(tmp_path: Path, address: str, warned: bool) -> None:
    done = CliRunner().invoke(main, ["explain", str(tmp_path / "none.sqlite"), "--scheduler", address])
    assert done.exit_code == 2
    assert ("is not tls://: whoever can reach it can run programs there" in done.stderr) is warned


def test_no_worker_is_no_number_of_workers(tmp_path: Path) -> None:
    done = CliRunner().invoke(main, ["explain", str(tmp_path / "none.sqlite"), "--workers", "0"])
    assert done.exit_code == 2
    assert "--workers" in done.stderr
