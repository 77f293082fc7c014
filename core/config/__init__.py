"""trainwatch.toml and the shipped data: schema, loading, problems, provenance."""
