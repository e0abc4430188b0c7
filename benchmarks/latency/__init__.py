"""From arrival to callback, and epochs under growing windows."""
