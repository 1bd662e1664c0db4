"""The database that holds a capture, and how views are queried."""
