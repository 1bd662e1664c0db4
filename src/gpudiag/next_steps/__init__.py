"""The next profile or experiment, and the command for it."""
