"""A cache of many runs: Parquet tables that Polars and DuckDB read, and that results are read from."""
