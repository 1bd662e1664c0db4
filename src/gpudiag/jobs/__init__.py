"""Jobs of many ranks: a file read by itself into a small summary, summaries joined into tables that rules are asked on.

Nothing here is quadratic in the ranks: collectives are matched by their place in their communicator.
"""
