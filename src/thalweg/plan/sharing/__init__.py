"""Detection of queries that can share work: filters over one stream that run as one query, and
joins with equal predicates whose results are kept for all."""
