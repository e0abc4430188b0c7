"""The inner join of a SELECT over tables in another order: what is written, and how it is put."""
