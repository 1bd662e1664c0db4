"""Reader of cProfile's files, as `python -m cProfile -o FILE` and `pstats.Stats.dump_stats` write them."""
