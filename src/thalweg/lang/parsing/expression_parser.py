"""sqlglot's parser of expressions, as this language uses it: every function is left as written,
every node knows its place in the text, and what cannot be read is refused in our words."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from thalweg.errors import ParseError
from thalweg.lang.parsing.places import place
from thalweg.lang.parsing.unreadable import in_plain_words
from thalweg.lang.syntax import HiveParser, Spark, SparkParser, Token, TokenType, exp


class Dialect(Spark):
    """Spark's tokens, with no statement left unparsed as an opaque command."""

    class Tokenizer(Spark.Tokenizer):
        STRING_ESCAPES: ClassVar[list[str]] = ["\\", "'", '"']
        COMMANDS: ClassVar[set[TokenType]] = set()
        KEYWORDS: ClassVar[dict[str, TokenType]] = {
            k: v
            for k, v in Spark.Tokenizer.KEYWORDS.items()
            if v not in (TokenType.COMMAND, TokenType.HINT)
        }


class ExpressionParser(SparkParser):
    """sqlglot's expression parser with every function left as written."""

    FUNCTIONS: ClassVar[dict[str, Callable[..., Any]]] = {}
    FUNCTION_PARSERS: ClassVar[dict[str, Callable[..., Any]]] = {
        k: v
        for k, v in SparkParser.FUNCTION_PARSERS.items()
        if k in ("CAST", "TRY_CAST", "EXTRACT")
    }
    NO_PAREN_FUNCTIONS: ClassVar[dict[TokenType, Any]] = {}
    NO_PAREN_FUNCTION_PARSERS: ClassVar[dict[str, Callable[..., Any]]] = {
        "CASE": SparkParser.NO_PAREN_FUNCTION_PARSERS["CASE"]
    }
    STRICT_CAST = True
    failed_at = 0
    failed_word = ""

    def load(self, tokens: list[Token], text: str) -> None:
        self.reset()
        self.sql = text
        self._chunks = [tokens]
        self._chunk_index = 0
        self._advance_chunk()

    def offset(self) -> int:
        """Where the next token starts; the end of the text when there is none."""
        return int(self._curr.start) if self._curr else len(self.sql.rstrip())

    def end(self) -> int:
        """Where the last token ended; the end of the text when there was none."""
        return int(self._prev.end) + 1 if self._prev else len(self.sql)

    def raise_error(self, message: str, token: Any = None) -> None:
        """What sqlglot cannot read: the place is kept for `refused`, which says it in our words."""
        self.failed_at, self.failed_word = self.offset(), self._curr.text if self._curr else ""
        super().raise_error(message, token or self._curr or self._prev)

    def refused(self, message: str) -> ParseError:
        """The refusal for what sqlglot says of the text, at the place where it said so."""
        line, column = place(self.sql, self.failed_at)
        words, remedy = in_plain_words(message, self.failed_word)
        return ParseError(words, remedy=remedy, text=self.sql, line=line, column=column)

    def _parse_types(
        self,
        check_func: bool = False,
        schema: bool = False,
        allow_identifiers: bool = True,
        with_collation: bool = False,
    ) -> exp.Expr | None:
        # Hive's rule makes VARCHAR(2) a text of any length, and other dialects' names are known
        start = self.offset()
        node = super(HiveParser, self)._parse_types(
            check_func, schema, allow_identifiers, with_collation
        )
        written = self.sql[start : self.end()]
        if isinstance(node, exp.DataType) and not written[:1].isdigit():  # not that of 2L
            node.meta["written"] = written
        return node

    def _parse_unary(self) -> exp.Expr | None:
        start = self.offset()
        return self._spanning(start, self._subquery() or super()._parse_unary())

    def _parse_range(self, this: exp.Expr | None = None, parse_is: bool = True) -> exp.Expr | None:
        return self._spanning(None, super()._parse_range(this, parse_is))

    def _spanning(self, start: int | None, node: exp.Expr | None) -> exp.Expr | None:
        """The node, knowing where in the text it stands."""
        if node is not None:
            if start is not None:
                node.meta.setdefault("at", start)
            node.meta["end"] = self.end()
        return node

    def _subquery(self) -> exp.Expr | None:
        """A query in brackets, where one begins; implemented by the parser of queries."""
        return None
