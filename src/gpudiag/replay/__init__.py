"""The recorded timeline as a graph, replayed with fixes applied: what each of them is worth."""
