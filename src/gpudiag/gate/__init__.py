"""A report held to limits: gpudiag.toml, the budgets and findings it speaks of, and what is known already."""
