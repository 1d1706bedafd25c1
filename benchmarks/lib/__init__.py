"""Tools of all benchmarks: clocks, memory, results, data sets, problems and plots."""
