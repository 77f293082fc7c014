"""Parts of a supervisor that keep something: metrics, traces, first records, what the next launch is compared with."""
