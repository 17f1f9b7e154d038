"""Which rows a run reads: `input.where`, parsed, checked against an allow-list, and written out anew for Spark.

A condition must choose the same rows whenever it is evaluated, and say which columns it reads. So its tree is checked, node by
node: what is not listed here is refused. No two parsers agree on everything; Spark therefore gets what is written from the
checked tree, never the given text. Operators that parsers group in different ways must stand in parentheses.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any, cast

from dptext_spark.errors import SettingsError

if TYPE_CHECKING:
    from sqlglot.expressions import Column, Expr

Reference = tuple[str, ...]
Pieces = list[str | Reference]

# Built-in functions that depend on their arguments alone. They never give a text.
NUMBERS = frozenset(
    re.findall(
        r"\w+",
        "abs array_contains array_position array_size arrays_overlap ascii bit_count bit_length bround cardinality ceil ceiling "
        "char_length character_length contains crc32 endswith equal_null find_in_set floor hash instr isnan isnotnull isnull "
        "json_array_length length levenshtein locate map_contains_key mod negative octet_length pmod positive regexp_count "
        "regexp_instr regexp_like round shiftleft shiftright sign signum size sqrt startswith xxhash64",
    )
)
# They give dates and timestamps, or parts of them.
TIMES = frozenset(
    re.findall(
        r"\w+",
        "add_months date_add date_diff date_from_unix_date date_sub date_trunc datediff day dayofmonth dayofweek dayofyear hour "
        "last_day make_date make_timestamp minute month months_between next_day quarter second timestamp_micros timestamp_millis "
        "timestamp_seconds to_date to_timestamp trunc unix_date unix_micros unix_millis unix_seconds weekday weekofyear year",
    )
)
# They may give a text, which Spark may read as a time where it is compared with one.
TEXTS = frozenset(
    re.findall(
        r"\w+",
        "array array_max array_min base64 btrim coalesce concat concat_ws date_format element_at get_json_object greatest hex if "
        "ifnull initcap lcase least left lower lpad ltrim map_keys map_values md5 nanvl nullif nvl nvl2 regexp_extract "
        "regexp_replace regexp_substr repeat replace reverse right rpad rtrim sha sha1 sha2 soundex split split_part substr "
        "substring substring_index translate trim try_element_at ucase upper",
    )
)
FUNCTIONS = NUMBERS | TIMES | TEXTS
VALID = (
    "valid: a condition on the columns of each row by comparisons, AND, OR, NOT, IN (values), BETWEEN, LIKE, RLIKE, IS NULL, "
    "CASE, CAST, arithmetic, fields and the functions that docs/guide/settings lists"
)
CASTS = {
    "BOOLEAN": "BOOLEAN", "TINYINT": "TINYINT", "SMALLINT": "SMALLINT", "INT": "INT", "BIGINT": "BIGINT", "FLOAT": "FLOAT",
    "DOUBLE": "DOUBLE", "DECIMAL": "DECIMAL", "TEXT": "STRING", "DATE": "DATE", "TIMESTAMP": "TIMESTAMP",
    "TIMESTAMPTZ": "TIMESTAMP", "TIMESTAMPLTZ": "TIMESTAMP_LTZ", "TIMESTAMPNTZ": "TIMESTAMP_NTZ",
}  # fmt: skip
UNITS = ("YEAR", "MONTH", "WEEK", "DAY", "HOUR", "MINUTE", "SECOND")
DEEPEST = 100  # nested parentheses and calls

# How tightly operators bind in Spark's grammar. A tree that keeps to it is the only one that its words can mean there.
OR, AND, NOT, PREDICATE, COMPARISON, BIT_OR, BIT_XOR, BIT_AND, SUM, PRODUCT, SIGN, ATOM = range(12)
_NUMBER = re.compile(r"(\d+|\d+\.\d*|\.\d+)([eE][+-]?\d+)?(L|S|Y|F|D|BD)?", re.IGNORECASE)
# Spark reads these as the time at which it reads them, and a time without a date as one of today.
OF_NOW = re.compile(
    r"(now|(today|tomorrow|yesterday)(\s*[^a-z\s]\S*|\s+\S+)?|T?\d{1,2}:.*)", re.IGNORECASE | re.DOTALL
)
TIME = re.compile(
    r"\d{4}-\d{1,2}-\d{1,2}([ T]\d{1,2}:\d{1,2}(:\d{1,2}(\.\d{1,6})?)?)?(Z|[+-]\d{1,2}:\d{2}| ?UTC)?"
)
_ESCAPES = {
    "b": "\b",
    "n": "\n",
    "r": "\r",
    "t": "\t",
    "\\": "\\",
    "'": "'",
    '"': '"',
    "%": "\\%",
    "_": "\\_",
}
_SIGNS = {"EQ": "=", "NEQ": "<>", "LT": "<", "LTE": "<=", "GT": ">", "GTE": ">="}


def of_now(text: str) -> bool:
    """Whether Spark reads a text as a time that depends on when it is read."""
    return OF_NOW.fullmatch(text.strip("".join(map(chr, range(33))))) is not None


@dataclass(frozen=True)
class Condition:
    """A condition that was checked.

    Attributes:
        text: as it was given. It binds runs and streams.
        pieces: the condition as Spark gets it, cut where a column is named.
        functions: the functions that it calls.
        tells_time: whether it reads or makes times, which depend on the time zone of the session.
    """

    text: str
    pieces: tuple[str | Reference, ...]
    functions: frozenset[str]
    tells_time: bool

    @property
    def references(self) -> tuple[Reference, ...]:
        """The columns that it names: each by the parts of its name."""
        return tuple(dict.fromkeys(piece for piece in self.pieces if not isinstance(piece, str)))

    def names(self, columns: Iterable[str]) -> bool:
        """Whether it reads one of some columns, or a field of one's column, as far as their names tell without a schema."""
        wanted = {
            root.replace("``", "`").lower()
            for column in columns
            for root in (column, re.sub(r"^`((?:[^`]|``)+)`.*|^([^.`]+).*", r"\1\2", column, flags=re.DOTALL))
        }
        return any(found[0].lower() in wanted for found in self.references)

    def roots(self, columns: Sequence[str]) -> tuple[str, ...]:
        """Return the top-level columns that it reads.

        Args:
            columns: of the input.

        Raises:
            SettingsError: one is not there.
        """
        return tuple(dict.fromkeys(_column(found[0], columns) for found in self.references))

    def sql(self, columns: Sequence[str]) -> str:
        """Return the condition as Spark gets it.

        Args:
            columns: of the input. Each name in the condition must be one of them, or a field of one: other names Spark may
                take for a variable, a hidden column or the user's name.

        Raises:
            SettingsError: one is not there.
        """
        return "".join(piece if isinstance(piece, str) else _named(piece, columns) for piece in self.pieces)


def _column(name: str, columns: Sequence[str]) -> str:
    found = [name] if name in columns else [one for one in columns if one.lower() == name.lower()]
    if len(found) != 1 or "${" in found[0]:
        raise SettingsError(f"input.where: {name!r} is not in the input; columns: {', '.join(columns)}.")
    return found[0]


def _named(reference: Reference, columns: Sequence[str]) -> str:
    """Name a column so that nothing but it is meant: `a.b` could be column b of a table a."""
    ticked = "`" + _column(reference[0], columns).replace("`", "``") + "`"
    return ticked + "".join(f"[{_quoted(field)}]" for field in reference[1:])


def refused(what: str) -> SettingsError:
    """Return the error for what may not stand in a condition."""
    return SettingsError(f"input.where: {what}; {VALID}.")


@lru_cache(maxsize=8)
def parsed(text: str) -> Condition:
    """Parse and check a condition.

    Raises:
        SettingsError: names what may not stand in it; its values are not repeated.
    """
    if not text.strip():
        raise SettingsError(
            "input.where: an empty text given; valid: null, or a predicate such as lang = 'en'."
        )
    tree, parentheses = _tree(text)
    writer = _Writer()
    try:
        pieces = writer.piece(tree, OR)
    except RecursionError:
        raise refused("it is nested too deeply") from None
    if writer.parentheses != parentheses:  # the parser put some where it was not sure
        raise refused(
            "some operators stand side by side that parsers order in different ways: add parentheses"
        )
    return Condition(text, tuple(_joined(pieces)), frozenset(writer.functions), writer.tells_time)


def _joined(pieces: Iterable[str | Reference]) -> Iterable[str | Reference]:
    """Join neighbouring texts."""
    held = ""
    for piece in pieces:
        if isinstance(piece, str):
            held += piece
        else:
            yield held
            yield piece
            held = ""
    yield held


def _tree(text: str) -> tuple[Any, int]:
    """Parse with the grammar of Spark, functions by their names as they stand; also count the parentheses that open."""
    from sqlglot import ErrorLevel, exp
    from sqlglot.errors import SqlglotError

    dialect, parser = _grammar()
    if "${" in text:
        raise refused("${ given, in whose place Spark puts variables of its process")
    try:
        tokens = _tokens(dialect.tokenize(text), text)
        (tree,) = parser(dialect=dialect, error_level=ErrorLevel.IMMEDIATE).parse_into(
            exp.Condition, tokens, text
        )
    except (SqlglotError, ValueError) as error:
        first = (getattr(error, "errors", None) or [{}])[0]
        at = f" near line {first['line']}, column {first['col']}" if first.get("line") else ""
        raise refused(f"it is no condition that can be read{at}") from None
    except RecursionError:
        raise refused("it is nested too deeply") from None
    if tree is None:
        raise refused("it is no condition that can be read")
    return tree, sum(token.text == "(" and text[token.start] == "(" for token in tokens)


@cache
def _grammar() -> tuple[Any, Any]:
    """Return Spark's dialect, and its parser without the knowledge of functions: that would rewrite and rename them."""
    from sqlglot.dialects.spark import Spark

    def called(self: Any, strict: bool) -> Any:
        found = self._parse_cast(strict, safe=None if strict else True)
        found.meta["called"] = 1  # other than DATE '2024-12-31', without parentheses
        return found

    changed = {
        "FUNCTIONS": {},
        "FUNCTION_PARSERS": {
            "CAST": lambda self: called(self, True),
            "TRY_CAST": lambda self: called(self, False),
        },
        "NO_PAREN_FUNCTION_PARSERS": {"CASE": Spark.Parser.NO_PAREN_FUNCTION_PARSERS["CASE"]},
        "STRICT_CAST": True,
    }
    return Spark(), type("Grammar", (Spark.Parser,), changed)


def _tokens(tokens: list[Any], text: str) -> list[Any]:
    """Read the values as Spark reads them, and refuse what parsers see in different places.

    Raises:
        SettingsError: a comment, `::`, a doubled quote, or an escape: what parsers read in different ways.
    """
    from sqlglot import TokenType

    found: list[Any] = []
    skip = 0
    for number, token in enumerate(tokens):
        if token.comments:
            raise refused("a comment given")
        if skip:
            skip -= 1
            continue
        following = tokens[number + 1] if number + 1 < len(tokens) else None
        if token.token_type == TokenType.DCOLON:
            raise refused(":: given (CAST(x AS type) is the same)")
        if token.token_type in (TokenType.ISNULL, TokenType.NOTNULL) and (
            following is None or following.token_type != TokenType.L_PAREN
        ):
            raise refused("ISNULL or NOTNULL without parentheses given (IS NULL is the same)")
        if token.token_type == TokenType.STRING:
            if (
                following is not None
                and following.start == token.end + 1
                and following.token_type == TokenType.STRING
            ):
                # One quote to Spark 4.2, none to Spark 4.0.
                raise refused(
                    "a doubled quote given, which not every Spark reads alike (\\' is the same in all)"
                )
            token.text = _unescaped(text[token.start : token.end + 1])
        elif token.token_type == TokenType.NUMBER:
            # As it is written. A suffix such as L comes as a cast, two tokens in the same place.
            token.text = text[token.start : token.end + 1]
            skip = 2 if following is not None and following.start == token.start else 0
        found.append(token)
    return found


def _unescaped(quoted: str) -> str:
    """Return the text that a literal of Spark stands for."""
    mark, inner = quoted[0], quoted[1:-1]
    if mark not in "'\"" or quoted[-1] != mark:
        raise refused("a literal with a prefix given")

    def one(match: re.Match[str]) -> str:
        if match[1] not in _ESCAPES:
            raise refused("an escape other than \\\\ \\' \\\" \\n \\r \\t \\b \\% \\_ given")
        return _ESCAPES[match[1]]

    return re.sub(r"\\(.?)", one, inner, flags=re.DOTALL)


def _quoted(text: str) -> str:
    """Write a text so that no setting of the session reads it in another way."""
    try:
        content = text.encode()
    except UnicodeEncodeError:
        raise refused("half a character given") from None
    plain = not re.search(r"['\\$\x00-\x1f\x7f-\x9f]", text)
    return f"'{text}'" if plain else f"CAST(X'{content.hex()}' AS STRING)"


class _Writer:
    """Checks a tree and writes it out, every operator in parentheses."""

    def __init__(self) -> None:
        self.functions: set[str] = set()
        self.tells_time = False
        self.parentheses = 0
        self._depth = 0

    def piece(self, node: Expr, least: int, pattern: bool = False) -> Pieces:
        """Write a node that must bind at least so tightly; a pattern is never read as a time."""
        form = _FORMS.get(type(node).__name__)
        if form is None:
            raise refused(f"{_called(node)} given")
        if form.level < least:
            raise refused(
                f"{_called(node)} stands beside an operator that parsers order in different ways: add parentheses"
            )
        given = {name for name, value in node.args.items() if value not in (None, False, [], ())}
        if not given <= form.args | form.ignored:
            raise refused(f"{_called(node)} with an addition given")
        self._depth += 1
        if self._depth > DEEPEST:
            raise RecursionError
        found: Pieces = form.write(self, node, pattern)
        self._depth -= 1
        return found

    def constant(self, pieces: Iterable[str | Reference]) -> bool:
        """Whether no column is read."""
        return all(isinstance(piece, str) for piece in pieces)


# How a kind of node is written: the writer, the node, and whether it is a pattern.
Write = Callable[["_Writer", "Expr", bool], Pieces]


@dataclass(frozen=True)
class _Form:
    level: int
    write: Write
    args: frozenset[str]
    ignored: frozenset[str]


def _form(level: int, write: Write, args: str = "this expression", ignored: str = "") -> _Form:
    # sqlglot notes the type of what it knows, and a dialect's ways of dividing and joining.
    return _Form(level, write, frozenset(args.split()), frozenset(ignored.split()) | {"_type"})


def _binary(operator: str, left: int, right: int, pattern: bool = False) -> Write:
    def write(writer: _Writer, node: Expr, _: bool) -> Pieces:
        one, other = writer.piece(node.this, left), writer.piece(node.expression, right, pattern)
        if operator == "||" and writer.constant((*one, *other)):
            raise refused("a text that is made of constants given (write the text itself)")
        word = f" NOT {operator} " if node.args.get("negate") else f" {operator} "
        return ["(", *one, word, *other, ")"]

    return write


def _chain(operator: str, level: int) -> Write:
    """Write AND and OR without depth: there may be hundreds of them."""

    def write(writer: _Writer, node: Expr, _: bool) -> Pieces:
        found: Pieces = []
        for part in node.flatten(unnest=False):
            found += [f" {operator} " if found else "(", *writer.piece(part, level)]
        return [*found, ")"]

    return write


def _prefix(operator: str, least: int) -> Write:
    return lambda writer, node, _: [f"({operator} ", *writer.piece(node.this, least), ")"]


def _paren(writer: _Writer, node: Expr, pattern: bool) -> Pieces:
    writer.parentheses += 1
    return writer.piece(node.this, OR, pattern)


def _is(writer: _Writer, node: Expr, _: bool) -> Pieces:
    kind = type(node.expression).__name__
    if kind not in ("Null", "Boolean"):
        raise refused("IS with something else than NULL, TRUE or FALSE given")
    word = " IS NOT " if node.args.get("negate") else " IS "
    return ["(", *writer.piece(node.this, COMPARISON), word, *writer.piece(node.expression, ATOM), ")"]


def _between(writer: _Writer, node: Expr, _: bool) -> Pieces:
    low, high = (writer.piece(node.args[name], BIT_OR) for name in ("low", "high"))
    return ["(", *writer.piece(node.this, COMPARISON), " BETWEEN ", *low, " AND ", *high, ")"]


def _in(writer: _Writer, node: Expr, _: bool) -> Pieces:
    if not node.expressions:
        raise refused("IN without a list of values given")
    writer.parentheses += 1
    return ["(", *writer.piece(node.this, COMPARISON), " IN (", *_listed(writer, node.expressions), "))"]


def _listed(writer: _Writer, nodes: Sequence[Expr]) -> Pieces:
    found: Pieces = []
    for node in nodes:
        found += [", "] if found else []
        found += writer.piece(node, OR)
    return found


def _escape(writer: _Writer, node: Expr, _: bool) -> Pieces:
    like = writer.piece(node.this, PREDICATE)
    sign = node.expression
    if (
        type(node.this).__name__ not in ("Like", "ILike")
        or not getattr(sign, "is_string", False)
        or len(sign.this) != 1
    ):
        raise refused("ESCAPE with something else than one character given")
    if sign.this in "'\\$" or not sign.this.isprintable():
        raise refused("ESCAPE with a quote, a backslash or $ given")
    return [*like[:-1], f" ESCAPE '{sign.this}')"]


def _literal(writer: _Writer, node: Expr, pattern: bool) -> Pieces:
    if not node.args.get("is_string"):
        if not _NUMBER.fullmatch(node.this):
            raise refused("a number of another kind given")
        return [node.this]
    return _raw(writer, node, pattern)


def _raw(_: _Writer, node: Expr, pattern: bool) -> Pieces:
    if not pattern and of_now(node.this):
        raise refused(
            "a text that Spark may read as a time of today given (for a column of texts: LIKE 'today'; for a time: the whole "
            "date)"
        )
    return [_quoted(node.this)]


def _boolean(_: _Writer, node: Expr, __: bool) -> Pieces:
    return ["TRUE" if node.this else "FALSE"]


def _reference(_: _Writer, node: Expr, __: bool) -> Pieces:
    return [_parts(cast("Column", node))]


def _parts(node: Column) -> Reference:
    """Return the names of a column and its fields.

    Raises:
        SettingsError: a part is no plain name.
    """
    parts = node.parts
    for part in parts:
        if type(part).__name__ != "Identifier" or not part.this:
            raise refused(f"{_called(part)} given")
    return tuple(str(part.this) for part in parts)


def _dot(writer: _Writer, node: Expr, _: bool) -> Pieces:
    field = node.expression
    if type(field).__name__ != "Identifier":
        raise refused(f"{_called(field)} of a namespace given")
    return [*writer.piece(node.this, ATOM), f"[{_quoted(field.this)}]"]


def _bracket(writer: _Writer, node: Expr, _: bool) -> Pieces:
    if len(node.expressions) != 1:
        raise refused("[ ] with several values given")
    return [*writer.piece(node.this, ATOM), "[", *writer.piece(node.expressions[0], OR), "]"]


def _case(writer: _Writer, node: Expr, _: bool) -> Pieces:
    found: Pieces = ["CASE"]
    if node.this is not None:
        found += [" ", *writer.piece(node.this, OR)]
    for branch in node.args["ifs"]:
        when, then = writer.piece(branch.this, OR), writer.piece(branch.args["true"], OR)
        found += [" WHEN ", *when, " THEN ", *then]
    if node.args.get("default") is not None:
        found += [" ELSE ", *writer.piece(node.args["default"], OR)]
    return [*found, " END"]


def _cast(writer: _Writer, node: Expr, _: bool) -> Pieces:
    kind = node.args["to"]
    name = CASTS.get(getattr(kind.this, "name", ""))
    if name is None or kind.args.get("nested"):
        raise refused(f"CAST to another type than {', '.join(dict.fromkeys(CASTS.values()))} given")
    sizes = [one.this.this for one in kind.expressions if type(one).__name__ == "DataTypeParam"]
    if (
        len(sizes) != len(kind.expressions)
        or (sizes and name != "DECIMAL")
        or not all(s.isdigit() for s in sizes)
    ):
        raise refused("CAST to a type with an addition given")
    if name == "DATE" or name.startswith("TIMESTAMP"):
        self_told = type(node.this).__name__ == "Literal" and node.this.args.get("is_string")
        if self_told and not TIME.fullmatch(node.this.this):
            raise refused("a time that is not written as 2024-12-31 or 2024-12-31 23:59:59 given")
        if not self_told and name != "DATE":
            # Of a text without a date Spark would make a time of today.
            raise refused(
                "CAST of something else than a literal to TIMESTAMP given (to_timestamp(x, format) reads texts)"
            )
        writer.tells_time = True
    word = "TRY_CAST" if type(node).__name__ == "TryCast" else "CAST"
    typed = name + (f"({', '.join(sizes)})" if sizes else "")
    writer.parentheses += bool(sizes) + node.meta.get("called", 0)
    return [f"{word}(", *writer.piece(node.this, OR), f" AS {typed})"]


def _interval(_: _Writer, node: Expr, __: bool) -> Pieces:
    amount, unit = node.this, str(getattr(node.args.get("unit"), "this", "")).upper()
    unit = unit.removesuffix("S")
    if type(amount).__name__ != "Literal" or not re.fullmatch(r"-?\d{1,6}", amount.this) or unit not in UNITS:
        raise refused(f"INTERVAL with something else than a whole number and one of {', '.join(UNITS)} given")
    return [f"INTERVAL '{amount.this}' {unit}"]


def _function(writer: _Writer, node: Expr, _: bool) -> Pieces:
    name = str(getattr(node.this, "this", node.this)).lower()
    if name not in FUNCTIONS:
        shown = name if re.fullmatch(r"\w{1,40}", name) else "a function"
        raise refused(f"{shown}(...) given")
    found = _listed(writer, node.expressions)
    if name in TEXTS and writer.constant(found):
        raise refused(f"{name}(...) of constants given (write the value itself)")
    if name == "to_timestamp" and len(node.expressions) != 2:
        raise refused("to_timestamp without a format given")
    writer.functions.add(name)
    writer.parentheses += 1
    writer.tells_time |= name in TIMES or name == "date_format"
    return [f"{name}(", *found, ")"]


# How each kind of node is checked and written.
_FORMS: dict[str, _Form] = {
    "Or": _form(OR, _chain("OR", AND)),
    "And": _form(AND, _chain("AND", NOT)),
    "Not": _form(NOT, _prefix("NOT", NOT), "this"),
    **{name: _form(COMPARISON, _binary(sign, COMPARISON, BIT_OR)) for name, sign in _SIGNS.items()},
    # Written <=> or IS [NOT] DISTINCT FROM, which bind in different ways.
    "NullSafeEQ": _form(PREDICATE, _binary("<=>", BIT_OR, BIT_OR)),
    "NullSafeNEQ": _form(PREDICATE, _binary("IS DISTINCT FROM", BIT_OR, BIT_OR)),
    "Like": _form(PREDICATE, _binary("LIKE", COMPARISON, BIT_OR, True), "this expression negate"),
    "ILike": _form(PREDICATE, _binary("ILIKE", COMPARISON, BIT_OR, True), "this expression negate"),
    "RegexpLike": _form(PREDICATE, _binary("RLIKE", COMPARISON, BIT_OR, True)),
    "Escape": _form(PREDICATE, _escape),
    "Is": _form(PREDICATE, _is, "this expression negate"),
    "Between": _form(PREDICATE, _between, "this low high"),
    "In": _form(PREDICATE, _in, "this expressions"),
    "BitwiseOr": _form(BIT_OR, _binary("|", BIT_OR, BIT_XOR)),
    "BitwiseXor": _form(BIT_XOR, _binary("^", BIT_XOR, BIT_AND)),
    "BitwiseAnd": _form(BIT_AND, _binary("&", BIT_AND, SUM)),
    "Add": _form(SUM, _binary("+", SUM, PRODUCT)),
    "Sub": _form(SUM, _binary("-", SUM, PRODUCT)),
    "DPipe": _form(SUM, _binary("||", SUM, PRODUCT), ignored="safe"),
    "Mul": _form(PRODUCT, _binary("*", PRODUCT, SIGN)),
    "Div": _form(PRODUCT, _binary("/", PRODUCT, SIGN), ignored="typed safe"),
    "Mod": _form(PRODUCT, _binary("%", PRODUCT, SIGN)),
    "IntDiv": _form(PRODUCT, _binary("DIV", PRODUCT, SIGN)),
    "Neg": _form(SIGN, _prefix("-", SIGN), "this"),
    "BitwiseNot": _form(SIGN, _prefix("~", SIGN), "this"),
    "Paren": _form(ATOM, _paren, "this"),
    "Literal": _form(ATOM, _literal, "this is_string"),
    "RawString": _form(ATOM, _raw, "this"),
    "Null": _form(ATOM, lambda *_: ["NULL"], ""),
    "Boolean": _form(ATOM, _boolean, "this"),
    "Column": _form(ATOM, _reference, "this table db catalog"),
    "Dot": _form(ATOM, _dot),
    "Bracket": _form(ATOM, _bracket, "this expressions"),
    "Case": _form(ATOM, _case, "this ifs default"),
    "Cast": _form(ATOM, _cast, "this to"),
    "TryCast": _form(ATOM, _cast, "this to", ignored="safe"),
    "Interval": _form(ATOM, _interval, "this unit"),
    "Anonymous": _form(ATOM, _function, "this expressions"),
}


def _called(node: Expr) -> str:
    """Name a kind of node as a user knows it; nothing of its content."""
    kind = type(node).__name__
    known = {
        "Star": "*", "Subquery": "a subquery", "Select": "a subquery", "Exists": "EXISTS", "Lambda": "a lambda function",
        "Values": "VALUES", "Placeholder": "a parameter", "Parameter": "a parameter", "HexString": "a binary literal",
        "Concat": "texts side by side", "Alias": "AS", "Aliases": "AS", "Window": "OVER", "Tuple": "a tuple",
    }  # fmt: skip
    words = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", kind).upper()
    return known.get(kind, words)
