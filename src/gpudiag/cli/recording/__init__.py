"""Commands about recordings: make one, clean one."""
