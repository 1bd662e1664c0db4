"""Record a program: its time without a profiler, then a bounded part of it under Nsight Systems, cleaned of secrets.

Nothing here imports more than the standard library, so that it also runs where nothing else is installed.
"""
