"""Join plans with and without kept subresults, fixed and adaptive."""
