"""Maintenance of packs: late rows taken out, small packs and group states merged, output of many
epochs put together. No row that can be read changes."""
