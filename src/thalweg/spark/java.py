"""Make sure there is a Java for Spark: `python -m thalweg.spark.java`.

Looks for Java 17 or newer and, if there is none and the network allows, fetches one into ~/.jdk
through the `install-jdk` package. Never fails: what is missing is said when Spark is started.
"""

from __future__ import annotations

import sys

from thalweg.errors import ConfigError
from thalweg.spark.settings import JAVA_REMEDY, find_java


def ensure_java() -> str | None:
    """Path of a suitable Java, installing one if need be; None if that fails."""
    try:
        return find_java()[1]
    except ConfigError as error:
        print(f"{error.message}; trying to fetch a JDK 17 ...", file=sys.stderr)
    try:
        import jdk

        jdk.install("17")
        return find_java()[1]
    except Exception as error:  # no network, unknown platform, no disk: all end the same way
        print(f"could not fetch a JDK ({error})\n  → {JAVA_REMEDY}", file=sys.stderr)
        return None


if __name__ == "__main__":
    ensure_java()
