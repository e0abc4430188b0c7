"""Makes the helpers of this folder (`filter_data`) importable from the folders below it."""
