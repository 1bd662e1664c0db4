"""Tools for rule authors: new rules, checks, test cases, pages."""
