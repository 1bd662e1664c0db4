"""Record a program: its time without a profiler, then a bounded part of it under one, cleaned of secrets.

Nothing here needs more than the standard library, so that it also runs where nothing else is installed.
"""
