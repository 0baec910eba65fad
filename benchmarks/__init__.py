"""Speed and memory of steelyard beside its peers; see docs/benchmarks.md."""
