"""Parts of a supervisor that write files: metrics, traces, first records, data to compare the next launch with."""
