"""The loop: observe what runs, choose a plan for what was seen, run it, see whether it paid."""
