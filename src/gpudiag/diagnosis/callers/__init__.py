"""Who made a finding's calls."""
