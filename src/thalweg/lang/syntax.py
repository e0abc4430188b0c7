"""The parts of sqlglot in use: expression trees, the tokens and parser of Spark's dialect, and its
generator. Where another version of it differs, this is the module to change."""

from __future__ import annotations

from sqlglot import ErrorLevel, exp
from sqlglot.dialects.spark import Spark
from sqlglot.errors import SqlglotError, TokenError
from sqlglot.generators.spark import SparkGenerator
from sqlglot.parsers.hive import HiveParser
from sqlglot.parsers.spark import SparkParser
from sqlglot.tokenizer_core import Token, TokenType

__all__ = [
    "ErrorLevel",
    "HiveParser",
    "Spark",
    "SparkGenerator",
    "SparkParser",
    "SqlglotError",
    "Token",
    "TokenError",
    "TokenType",
    "exp",
]
