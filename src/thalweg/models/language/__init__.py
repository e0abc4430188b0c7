"""The clauses of models: how they are parsed, what they mean, and SELECT over them."""
