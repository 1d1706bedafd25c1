"""What the benchmarks share: clocks, memory, results, data sets, problems and plots."""
