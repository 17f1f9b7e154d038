"""Machine code of the compiled loops that was made elsewhere: recorded in one process, taken by another.

Numba finds its files by the path of a source file and by one processor's exact name. Here a loop is known by what it is: the
bytecode of its function and of all that it calls, and the constants that they read. So code fits wherever the same loops are,
in an archive, another folder or another environment. It lies below numba's own files, which are used for all that is not here,
and changes nothing for other functions that numba compiles in the process.

Machine code is run as it is found, and numba's form of it is a pickle: who hands it to :func:`attach` answers for it.
"""

from __future__ import annotations

import hashlib
import importlib.util
import logging
import pickle
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, fields
from functools import cache
from types import CodeType, FunctionType, ModuleType
from typing import Any

import llvmlite
import llvmlite.binding as llvm
import numba
import numpy as np
from numba.core import config as numba_config
from numba.core import sigutils, types
from numba.core.caching import CompileResultCacheImpl, FunctionCache
from numba.core.registry import cpu_target
from numba.core.serialize import dumps
from numba.extending import is_jitted

from dptext_spark.runtime.record import Record

PACKAGE = "dptext_spark"
_log = logging.getLogger(__name__)
_config: Any = numba_config
_types: Any = types
_sigutils: Any = sigutils
_dumps: Any = dumps


@dataclass(frozen=True)
class Target(Record):
    """What machine code was made with, and for which processor; both must agree where it is taken.

    Attributes:
        python: the version of its bytecode.
        numba, llvmlite, numpy: their versions.
        options: how carefully numba compiles.
        triple: the kind of machine, as LLVM names it.
        cpu: the processor, as LLVM names it.
        features: which of its instructions may be used; empty: those that its name stands for.
    """

    python: str
    numba: str
    llvmlite: str
    numpy: str
    options: str
    triple: str
    cpu: str
    features: str

    @classmethod
    def here(cls) -> Target:
        """Return that of this process."""
        triple, cpu, features = cpu_target.target_context.codegen().magic_tuple()
        return cls(
            python=f"{importlib.util.MAGIC_NUMBER[:2].hex()}",
            numba=numba.__version__,
            llvmlite=llvmlite.__version__,
            numpy=".".join(np.__version__.split(".")[:2]),  # numba knows no more of it
            options=f"opt={int(_config.OPT)} boundscheck={_config.BOUNDSCHECK}",
            triple=triple,
            cpu=cpu,
            features=features,
        )

    def differences(self, needed: frozenset[str] | None = None) -> tuple[str, ...]:
        """Return what keeps its code from being run in this process, in words; empty: nothing.

        Args:
            needed: the instructions that the code uses, where any processor that has them may run it; None: this very one.
        """
        there, here = self.as_dict(), Target.here().as_dict()
        compared = [one.name for one in fields(self)]
        if needed is not None and _config.CPU_NAME is None and _config.CPU_FEATURES is None:
            compared = compared[:-2]
            missing = sorted(needed - instructions())
            if missing:
                return (f"this processor has no {', '.join(missing)}",)
        return tuple(
            f"{name} {there[name]!r} there, {here[name]!r} here" if name != "features" else "other features"
            for name in compared
            if there[name] != here[name]
        )


def instructions() -> frozenset[str]:
    """Return the sets of instructions that this processor has, as LLVM names them."""
    try:
        return frozenset(name for name, has in llvm.get_host_cpu_features().items() if has)
    except RuntimeError:  # LLVM does not know them on this machine
        return frozenset()


@dataclass(frozen=True)
class LoopKey:
    """What a compiled loop is known by.

    Attributes:
        name: module and name of its function.
        digest: sha256 of its bytecode and of all that it uses, hex.
        signature: the types of its arguments.
    """

    name: str
    digest: str
    signature: str

    @classmethod
    def of(cls, function: Callable[..., Any], signature: Any) -> LoopKey:
        """Return the key of a function, compiled for arguments of these types."""
        arguments, _ = _sigutils.normalize_signature(signature)
        spelled = ", ".join(_spelled(argument) for argument in arguments)
        return cls(f"{function.__module__}.{function.__qualname__}", digest_of(function), spelled)


def _spelled(kind: Any) -> str:
    """Return the name of a type; that of a compiled function would hold an address."""
    if isinstance(kind, _types.Dispatcher):
        return f"loop {digest_of(kind.dispatcher.py_func)}"
    return str(kind)


@cache
def digest_of(function: Callable[..., Any]) -> str:
    """Return the sha256 of a function's bytecode, of all of this package that it calls, and of the constants they read.

    Where its source lies, its line numbers and its comments do not count.

    Raises:
        TypeError: it reads something whose value cannot be told.
    """
    lines: list[str] = []
    _describe_function(function, {}, lines)
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()


def _describe(value: Any, seen: dict[int, int], lines: list[str]) -> None:
    """Append lines that tell a value from every other that a loop may read; `seen` numbers functions by their id."""
    if is_jitted(value):
        lines.append(f"compiled {sorted((name, repr(one)) for name, one in value.targetoptions.items())}")
        _describe_function(value.py_func, seen, lines)
    elif isinstance(value, FunctionType) and not value.__module__.startswith(PACKAGE):
        lines.append(
            f"function {value.__module__}.{value.__qualname__}"
        )  # told by the version of its package
    elif isinstance(value, FunctionType):
        _describe_function(value, seen, lines)
    elif hasattr(value, "_defn"):  # an intrinsic
        lines.append("intrinsic")
        _describe_function(value._defn, seen, lines)
    elif isinstance(value, ModuleType) and not value.__name__.startswith(PACKAGE):
        lines.append(f"module {value.__name__}")
    elif value is None or isinstance(value, bool | int | float | complex | str | bytes):
        lines.append(f"{type(value).__name__} {value!r}")
    elif isinstance(value, np.ndarray | np.generic):
        array = np.ascontiguousarray(value)
        if array.dtype.hasobject:
            raise TypeError("a compiled loop reads an array of objects.")
        lines.append(f"{type(value).__name__} {array.dtype.str} {array.shape} {array.tobytes().hex()}")
    elif isinstance(value, tuple):
        lines.append(f"tuple {len(value)}")
        for one in value:
            _describe(one, seen, lines)
    elif isinstance(value, frozenset):
        lines.append(f"frozenset {sorted(map(repr, value))}")
    elif isinstance(value, CodeType):
        _describe_code(value, seen, lines)
    elif isinstance(value, type) or callable(value):
        lines.append(f"{type(value).__name__} {value.__module__}.{value.__qualname__}")
    elif isinstance(value, _types.Type):
        lines.append(f"type {value}")
    else:
        raise TypeError(f"a compiled loop reads a {type(value).__name__}, whose value cannot be told.")


def _describe_function(function: Any, seen: dict[int, int], lines: list[str]) -> None:
    """Append the lines of a Python function: its code, defaults, and what its names stand for."""
    if id(function) in seen:
        lines.append(f"function {seen[id(function)]}")
        return
    seen[id(function)] = len(seen)
    lines.append(f"function {function.__qualname__}")
    _describe_code(function.__code__, seen, lines)
    _describe(function.__defaults__, seen, lines)
    for cell in function.__closure__ or ():
        _describe(cell.cell_contents, seen, lines)
    for name in sorted(_names(function.__code__)):
        if name in function.__globals__:
            lines.append(f"global {name}")
            _describe(function.__globals__[name], seen, lines)


def _describe_code(code: CodeType, seen: dict[int, int], lines: list[str]) -> None:
    """Append the lines of bytecode."""
    arguments = (code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount, code.co_flags)
    lines.append(f"code {code.co_code.hex()} {arguments}")
    lines.append(f"{code.co_names} {code.co_varnames} {code.co_freevars} {code.co_cellvars}")
    lines.append(getattr(code, "co_exceptiontable", b"").hex())
    _describe(code.co_consts, seen, lines)


def _names(code: CodeType) -> set[str]:
    """Return the names that bytecode reads, with those of the functions in it."""
    nested = (_names(one) for one in code.co_consts if isinstance(one, CodeType))
    return set(code.co_names).union(*nested)


@dataclass(frozen=True)
class Recorded:
    """The machine code of one loop.

    Attributes:
        key: what it is known by.
        code: numba's form of it, a pickle.
    """

    key: LoopKey
    code: bytes


class _State:
    """What this process has at hand, and what it took of it."""

    def __init__(self) -> None:
        self.attached: dict[LoopKey, bytes | memoryview] = {}
        self.taken = 0
        self.recorded: dict[LoopKey, Recorded] | None = None
        self.depth = 0  # of loops that are compiled because another one that is compiled calls them
        self.warned: set[str] = set()

    def record(self, key: LoopKey, code: bytes) -> None:
        """Keep the code of a loop that Python called; what a loop calls is inside its code."""
        if self.recorded is not None and self.depth == 0:
            self.recorded[key] = Recorded(key, code)

    def warn(self, text: str) -> None:
        """Log a sentence, once a process."""
        if text not in self.warned:
            self.warned.add(text)
            _log.warning("%s", text)


_state = _State()


def attach(loops: Mapping[LoopKey, bytes | memoryview]) -> None:
    """Take the code of these loops, from now on, where they are called; it is unpickled and run, so it must be trusted."""
    _state.attached.update(loops)


def taken() -> int:
    """Return how many loops this process took from what was attached."""
    return _state.taken


@contextmanager
def recording() -> Iterator[dict[LoopKey, Recorded]]:
    """Record the code of each loop that Python calls for the first time in this process, compiled or loaded."""
    if _state.recorded is not None:
        raise RuntimeError("the loops of this process are being recorded already.")
    _state.recorded, _state.depth = {}, 0
    try:
        yield _state.recorded
    finally:
        _state.recorded = None


class _Form(CompileResultCacheImpl):
    """Numba's form of a compiled loop, of which a copy is kept while loops are recorded."""

    latest: bytes = b""

    def reduce(self, cres: Any) -> Any:
        """Return the form of a compiled loop."""
        reduced = super().reduce(cres)  # type: ignore[no-untyped-call]
        self.latest = b"" if _state.recorded is None else _dumps(reduced)
        return reduced

    def rebuild(self, target_context: Any, payload: Any) -> Any:
        """Return the compiled loop of a form."""
        self.latest = b"" if _state.recorded is None else _dumps(payload)
        return super().rebuild(target_context, payload)  # type: ignore[no-untyped-call]


class LoopCache(FunctionCache):
    """The cache of one compiled function: attached code first, then numba's files."""

    _impl_class = _Form

    def __init__(self, function: Callable[..., Any]) -> None:
        """Find the place of numba's files, as its settings are now."""
        super().__init__(function)  # type: ignore[no-untyped-call]

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Return the compiled loop for these arguments, or None where it must be compiled."""
        found = None
        if _state.attached:
            found = self._attached(sig, target_context)
        if found is None:
            found = self._from_files(sig, target_context)
        if found is None:
            _state.depth += 1  # compiled now, and saved then
        return found

    def save_overload(self, sig: Any, data: Any) -> None:
        """Keep a loop that was compiled. Where no file can be written, the process goes on."""
        _state.depth = max(0, _state.depth - 1)
        try:
            super().save_overload(sig, data)  # type: ignore[no-untyped-call]
        except OSError as error:
            _state.warn(f"{self.cache_path}: {error.strerror}; loops are compiled again by each process.")
            if _state.recorded is not None and not self._impl.latest:
                self._impl.reduce(data)
        self._record(sig)

    def is_in_files(self) -> bool:
        """Whether numba's files hold the loop for some arguments, for this processor."""
        target = cpu_target.target_context.codegen().magic_tuple()
        try:
            index: Any = self._cache_file._load_index()  # type: ignore[no-untyped-call]
            return any(key[1] == target for key in index)
        except OSError:
            return False

    def _from_files(self, sig: Any, target_context: Any) -> Any:
        """Return what numba's files hold."""
        try:
            found = super().load_overload(sig, target_context)  # type: ignore[no-untyped-call]
        except OSError as error:
            _state.warn(f"{self.cache_path}: {error.strerror}; loops are compiled.")
            return None
        if found is not None:
            self._record(sig)
        return found

    def _attached(self, sig: Any, target_context: Any) -> Any:
        """Return what was attached; None where nothing was, or where it is not what its key says."""
        key = LoopKey.of(self._py_func, sig)
        code = _state.attached.get(key)
        if code is None:
            return None
        target_context.refresh()
        try:
            found = self._impl.rebuild(target_context, pickle.loads(code))
        except Exception as error:  # whoever made it had other libraries, in spite of equal versions
            _state.warn(
                f"{key.name}: its machine code cannot be loaded ({type(error).__name__}); it is compiled."
            )
            return None
        if tuple(found.signature.args) != tuple(_sigutils.normalize_signature(sig)[0]):
            _state.warn(f"{key.name}: its machine code is for other arguments; it is compiled.")
            return None
        _state.taken += 1
        _state.record(key, bytes(code))
        return found

    def _record(self, sig: Any) -> None:
        """Keep the form that was seen last, while loops are recorded."""
        if _state.recorded is not None and self._impl.latest:
            _state.record(LoopKey.of(self._py_func, sig), self._impl.latest)
            self._impl.latest = b""
