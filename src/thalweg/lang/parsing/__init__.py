"""Text to syntax trees: the cursor over tokens, the grammar of SELECT, and pieces of statements.
Scalar expressions are sqlglot's."""
