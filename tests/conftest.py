"""Shared by all tests."""

import os
from pathlib import Path

import pytest
from hypothesis import settings

from evaluation import kept_reports

# Machines that run tests are shared: how long one example takes says nothing about the code.
settings.register_profile("quick", deadline=None, max_examples=25)
settings.register_profile("thorough", deadline=None, max_examples=300)
settings.load_profile(os.environ.get("GPUDIAG_TEST_PROFILE", "quick"))


def pytest_make_parametrize_id(val: object, argname: str) -> str | None:
    """Keeps bytes out of test names: gzip writes the time into them, and workers must collect equal names."""
    return argname if isinstance(val, bytes) else None


@pytest.fixture(autouse=True, scope="session")
def _cache_of_their_own(tmp_path_factory: pytest.TempPathFactory) -> None:
    """What tests read must not end up in the user's cache, nor come from there."""
    os.environ["XDG_CACHE_HOME"] = str(tmp_path_factory.mktemp("cache"))


@pytest.fixture(autouse=True, scope="session")
def _reports_made_once(tmp_path_factory: pytest.TempPathFactory) -> None:
    """All workers of a run keep their reports of captures in one folder."""
    base = tmp_path_factory.getbasetemp()
    shared = Path(base.parent if "PYTEST_XDIST_WORKER" in os.environ else base, "reports")
    shared.mkdir(exist_ok=True)
    os.environ.setdefault(kept_reports.VARIABLE, str(shared))
