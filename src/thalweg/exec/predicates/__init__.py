"""WHERE: conjunctions over a shrinking selection of rows, predicates that several queries share,
and index lookups for `column = constant`."""
