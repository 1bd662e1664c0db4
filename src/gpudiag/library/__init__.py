"""The knowledge: rules, views, remedies and thresholds, as loaded from YAML and SQL."""
