"""Shared by all tests."""

from hypothesis import settings

# Machines that run tests are shared: how long one example takes says nothing about the code.
settings.register_profile("steady", deadline=None)
settings.load_profile("steady")
