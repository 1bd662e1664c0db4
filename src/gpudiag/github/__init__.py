"""GitHub's API: pull requests and their comments."""
