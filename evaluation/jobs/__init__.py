"""Generated jobs: many ranks made of two real ones, with a cause planted. Made at run time and never kept.

They show whether the comparison of ranks names what is slow, and how its time grows. They prove nothing of programs:
that is what the real captures are for.
"""
