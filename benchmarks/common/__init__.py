"""What the benchmarks share: options and tables, recordings, jobs in processes, a server."""
