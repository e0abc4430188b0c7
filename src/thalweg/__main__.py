"""`python -m thalweg` is the `thalweg` command."""

from __future__ import annotations

import sys

from thalweg.cli import main

sys.exit(main())
