"""Maintenance of packs: late rows taken out, small packs and group states merged, output of many
epochs compacted. No readable row changes."""
