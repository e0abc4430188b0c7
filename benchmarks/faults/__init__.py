"""Killed drivers and executors, full disks, bad files, clocks and functions."""
