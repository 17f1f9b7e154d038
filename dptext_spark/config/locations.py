"""Check whether two places of data are the same, or one is inside the other, without access to them.

Columns are located, too: a path with dots through nested ones, unusual parts in back-ticks.
"""

from __future__ import annotations

import os
import posixpath
import re
from urllib.parse import unquote

TABLE = re.compile(r"(`[^`]+`|\w+)(\.(`[^`]+`|\w+)){0,2}")
# A slash must follow: `a:b.csv` is the name of a file.
_SCHEME = re.compile(r"^([a-zA-Z][a-zA-Z0-9+.-]*):(?=/)(//)?")
_SAME_STORE = {"s3a": "s3", "s3n": "s3", "abfs": "abfss", "wasb": "wasbs"}
# user:password@ before a host (a password may hold slashes; a port before a path is none), or a signature or key as a
# parameter.
_CREDENTIALS = re.compile(
    r"^[a-z0-9+.-]+://[^/@:]*:(?!\d{1,5}/)[^@]*@"
    r"|[?&;#](sig|signature|x-(amz|goog)-(signature|credential|security-token)|(access_?|sas_?)?token|pass(word|wd)?|pwd"
    r"|secret|(account_?|access_?|shared_?access_?|api_?|encryption_?)?key|awsaccesskeyid|credentials?)=",
    re.IGNORECASE,
)
_PART = re.compile(r"`((?:[^`]|``)+)`|([^.`]+)")


# Where a path without a scheme may lead elsewhere than to this machine.
ELSEWHERE = (
    "HADOOP_CONF_DIR",
    "YARN_CONF_DIR",
    "SPARK_CONF_DIR",
    "SPARK_REMOTE",
    "DATABRICKS_RUNTIME_VERSION",
)


def is_here(path: str) -> bool:
    """Check by spelling and environment whether a path leads to a file of this machine."""
    if path.startswith("file:"):
        return True
    elsewhere = any(os.environ.get(name) for name in ELSEWHERE)
    return not elsewhere and not has_scheme(path)


def holds_credentials(path: str) -> bool:
    """Check whether a path carries a password or a signature, also with signs encoded such as %3F."""
    return any(_CREDENTIALS.search(spelling) for spelling in (path, unquote(path)))


def absolute(path: str) -> str:
    """Return a relative path as an absolute one of this process's folder, others as they are.

    Spark's readers and writers accept a relative path, but SQL does not find the Delta table behind it.
    """
    return path if _SCHEME.match(path) or path.startswith(("/", "~")) else os.path.abspath(path)


def normal_path(path: str) -> str:
    """Return one spelling for each place: absolute, without `file:`, `.`, `..`, doubled or trailing slashes.

    Local symbolic links are followed. Schemes that name the same store are one.
    """
    match = _SCHEME.match(path)
    scheme = match.group(1).lower() if match else "file"
    if match is None or scheme == "file":
        local = path[match.end() :] if match else path
        return os.path.realpath(posixpath.normpath("/" + local.lstrip("/")) if match else local)
    if scheme == "dbfs":
        return "dbfs:" + posixpath.normpath("/" + path[match.end() :].lstrip("/"))
    authority, _, rest = path[match.end() :].partition("/")
    below = posixpath.normpath("/" + rest.lstrip("/"))
    return f"{_SAME_STORE.get(scheme, scheme)}://{authority.lower()}{below}"


def same_path(one: str, other: str) -> bool:
    """Check whether two paths are the same place."""
    return normal_path(one) == normal_path(other)


def has_scheme(path: str) -> bool:
    """Check whether a path begins with a scheme such as `s3a:` or `file:`."""
    return _SCHEME.match(path) is not None


def inside(inner: str, outer: str) -> bool:
    """Check whether the path `inner` lies below the path `outer`."""
    return normal_path(inner).startswith(normal_path(outer).rstrip("/") + "/")


def normal_table(table: str) -> str:
    """Return catalog.schema.table in lower case, without backticks, with Spark's defaults filled in."""
    parts = [part.strip("`").lower() for part in re.findall(r"`[^`]+`|\w+", table)]
    return ".".join([*("spark_catalog", "default")[: 3 - len(parts)], *parts])


def same_table(one: str, other: str) -> bool:
    """Check by their spelling whether two catalog names are the same table."""
    return normal_table(one) == normal_table(other)


def parts_of(name: str) -> tuple[str, ...] | None:
    """Split a path at its dots, back-ticks respected: `meta.note`, or `` meta.`the note` ``; None where it is no path."""
    parts, at = [], 0
    while True:
        part = _PART.match(name, at)
        if part is None:
            return None
        parts.append(part[1].replace("``", "`") if part[1] else part[2])
        at = part.end()
        if at == len(name):
            return tuple(parts)
        if name[at] != ".":
            return None
        at += 1


def spelled(parts: tuple[str, ...]) -> str:
    """Return the one spelling of a path: back-ticks only where a part holds a dot or a back-tick."""
    return ".".join("`" + p.replace("`", "``") + "`" if "." in p or "`" in p else p for p in parts)
