"""The diagnosis from all outcomes: causes in order, places, kernels, the verdict."""
