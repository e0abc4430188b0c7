"""Makes the helpers of this folder importable from the folders below it."""
