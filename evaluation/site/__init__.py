"""The documentation site: pages of the repository that lie outside `docs/`, its build, and the check of its links."""
