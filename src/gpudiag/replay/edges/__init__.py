"""Edges of the replayed graph: the order of streams, waits of the host, and the list that both add to."""
