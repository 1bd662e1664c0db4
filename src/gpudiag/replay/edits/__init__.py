"""Effects of fixes on the graph: one `EditSpec` for each edit that rules can name.

An edit changes durations and lags of a edited of the graph; it never changes which operation comes first in a queue, so
that what it takes away can only shorten the replay. Only overlap_copy adds something: copies beside kernels are slower.
A new edit is one new file in this folder; nothing else lists them.
"""
