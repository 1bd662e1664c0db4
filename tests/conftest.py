"""Shared by all tests."""

import os

import pytest
from hypothesis import settings

# Machines that run tests are shared: how long one example takes says nothing about the code.
settings.register_profile("steady", deadline=None)
settings.load_profile("steady")


@pytest.fixture(autouse=True, scope="session")
def _cache_of_their_own(tmp_path_factory: pytest.TempPathFactory) -> None:
    """What tests read must not end up in the user's cache, nor come from there."""
    os.environ["XDG_CACHE_HOME"] = str(tmp_path_factory.mktemp("cache"))
