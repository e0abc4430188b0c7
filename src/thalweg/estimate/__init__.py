"""How many rows a join has: guaranteed bounds, exact counts and estimates, told apart."""
