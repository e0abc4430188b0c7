"""Ordinary SELECTs over tables and kept rows, run by Spark with joins in an order of ours."""
