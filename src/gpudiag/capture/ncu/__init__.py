"""A second run under Nsight Compute: the counters of a few kernels, after the timeline."""
