"""The driver's side without Spark: statements, watermarks, epochs, commits, retention."""
