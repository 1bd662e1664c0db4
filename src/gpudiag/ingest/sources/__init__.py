"""Sources of rows: SQLite, its pages read directly, Parquet."""
