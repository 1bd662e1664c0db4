"""Rules become outcomes: fired, clear or not evaluated, those of others in a sandbox."""
