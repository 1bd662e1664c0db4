"""Feed gpudiag damaged inputs, kill it at random moments, and judge what comes out."""
