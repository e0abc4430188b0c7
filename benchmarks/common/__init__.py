"""What all benchmarks share: reports with goals, processes of peers, line charts."""
