"""Output for GitHub: comments, annotations, outputs of a step."""
