"""Window joins of two to seven streams against Spark and Flink."""
