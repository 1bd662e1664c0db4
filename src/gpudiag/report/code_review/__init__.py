"""Reports for code review: SARIF, GitLab, checklists, and lines of the checkout."""
