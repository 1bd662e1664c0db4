"""Text in and out: values as people write them, names made safe, templates."""
