"""Compile loops with numba: the decorators, the intrinsics, and a cache of machine code in folders of ours.

The folders are the user's own and those that came with a model. Numba finds code by the path and the time of a source file. Here
a locator finds it by the name of a function. :func:`build` distinguishes states of the package and its libraries. So code fits in
an archive, another folder or another environment. Only the loops of this package use it: for all other code numba's settings and
locators stay as they are.

Machine code runs unchecked, and numba stores it as a pickle: the caller of :func:`attach` answers for the folder.
"""

from __future__ import annotations

import fcntl
import hashlib
import logging
import os
import platform
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any, TypeAlias, TypeVar, cast

import llvmlite
import llvmlite.binding as llvm
import numba
import numpy as np
from llvmlite import ir
from numba.core import cgutils, sigutils, types
from numba.core import config as numba_config
from numba.core.caching import CompileResultCacheImpl, FunctionCache, IndexDataCacheFile, _CacheLocator
from numba.core.registry import cpu_target
from numba.extending import intrinsic

from dptext_spark.errors import SettingsError
from dptext_spark.runtime.paths import own, temporary_cache, user_cache

PORTABLE = "x86-64-v3"
# Instruction sets that the level x86-64-v3 of the psABI adds to the first 64-bit processors, as LLVM names them.
V3 = frozenset(
    ("avx", "avx2", "bmi", "bmi2", "cx16", "f16c", "fma", "lzcnt", "movbe", "popcnt", "sahf", "sse3", "sse4.1", "sse4.2", "ssse3")
)  # fmt: skip
PATIENCE = 60.0  # seconds that a process waits for another one which compiles the same loop
# The kind of machine, the processor and its instructions, as LLVM names them.
Target: TypeAlias = tuple[str, str, str]
_log = logging.getLogger(__name__)
_config: Any = numba_config
_sigutils: Any = sigutils


@cache
def code_cache() -> str:
    """Return the folder for machine code: `$NUMBA_CACHE_DIR` where it is set, else one of the user's cache.

    A folder that others may write to is not used: loops are then compiled into a temporary folder. The reason is logged and not
    raised, for this runs at import.
    """
    named = os.environ.get("NUMBA_CACHE_DIR")
    try:
        if named and own(Path(named), "NUMBA_CACHE_DIR") is not None:
            return named
        place = user_cache()
    except SettingsError as error:
        _log.warning("%s This process compiles its loops itself meanwhile.", error)
        place = temporary_cache()
    return str(place / "code")


@cache
def source() -> str:
    """Compute 12 hex digits of a digest: numba's level of optimisation, and each module with loops or constants of loops."""
    digest = hashlib.sha256(f"{int(_config.OPT)} {_config.BOUNDSCHECK}".encode())
    for file in sorted(Path(__file__).parents[1].rglob("*.py")):
        content = file.read_bytes()
        if file.name == "jit.py" or b"@compiled\n" in content or b"compiled loops read" in content:
            digest.update(content)
    return digest.hexdigest()[:12]


def build() -> str:
    """Return the versions that code depends on, apart from the processor: Python, numba, llvmlite, NumPy, and :func:`source`."""
    numpy = ".".join(np.__version__.split(".")[:2])  # numba checks no more
    versions = f"numba{numba.__version__}-llvmlite{llvmlite.__version__}-numpy{numpy}"
    return f"{sys.implementation.cache_tag}-{versions}-{source()}"


@cache
def instructions() -> frozenset[str]:
    """Return the sets of instructions that this processor has, as LLVM names them."""
    try:
        return frozenset(name for name, has in llvm.get_host_cpu_features().items() if has)
    except RuntimeError:  # LLVM does not know them on this machine
        return frozenset()


def runs_portable() -> bool:
    """Check whether this process can run code for x86-64-v3, and numba's settings ask for no other."""
    chosen = _config.CPU_NAME is not None or _config.CPU_FEATURES is not None
    return not chosen and platform.machine().lower() in ("x86_64", "amd64") and instructions() >= V3


def targets() -> tuple[Target, ...]:
    """Return the targets whose code this process can run, its own first."""
    mine: Target = cpu_target.target_context.codegen().magic_tuple()
    return (mine, (mine[0], PORTABLE, "")) if runs_portable() else (mine,)


def folder_for(target: Target) -> str:
    """Return the name of the folder for code of a target, as this process would make it."""
    return f"{build()}-{target[1]}"


class _State:
    """Attached folders of this process, and the loops that it took from them."""

    def __init__(self) -> None:
        self.attached: dict[Path, Target] = {}
        self.taken = 0
        self.recorded: Path | None = None
        self.depth = 0  # of loops that are compiled because another one that is compiled calls them
        self.warned: set[str] = set()

    def warn(self, text: str) -> None:
        """Log a sentence, once a process."""
        if text not in self.warned:
            self.warned.add(text)
            _log.warning("%s", text)


_state = _State()


def attach(folder: Path) -> bool:
    """Take the loops that a folder holds, from now on, where they are called; they are run, so it must be trusted.

    Returns:
        Whether it holds code that fits this process.
    """
    for target in targets():
        part = folder / folder_for(target)
        if part.is_dir():
            _state.attached[part] = target
            return True
    return False


def taken() -> int:
    """Count the loops that this process took from attached folders."""
    return _state.taken


@contextmanager
def recording(folder: Path) -> Iterator[None]:
    """Write the code of each loop that Python calls for the first time in this process, compiled or loaded, to a folder."""
    if _state.recorded is not None:
        raise RuntimeError("this process already records its loops.")
    _state.recorded, _state.depth = folder, 0
    try:
        yield
    finally:
        _state.recorded = None


class _Locator(_CacheLocator):
    """Location of a loop's code, independent of path and time of its source."""

    def __init__(self, function: Callable[..., Any], file: str) -> None:
        self._py_file = file  # named where numba warns
        self._module = function.__module__

    def get_cache_path(self) -> str:
        """Return the user's folder for code of this processor."""
        return str(Path(code_cache()) / folder_for(targets()[0]))

    def get_source_stamp(self) -> str:
        """Return the stamp that numba compares with that of a file."""
        return build()

    def get_disambiguator(self) -> str:
        """Return the mark that distinguishes functions of equal name."""
        return self._module

    @classmethod
    def from_function(cls, py_func: Callable[..., Any], py_file: str) -> _Locator:
        """Return the locator of a function."""
        return cls(py_func, py_file)


class _Form(CompileResultCacheImpl):
    """Numba's form of a compiled loop."""

    _locator_classes = [_Locator]  # noqa: RUF012


class LoopCache(FunctionCache):
    """The cache of a compiled function: attached folders first, then the user's files."""

    _impl_class = _Form

    def __init__(self, function: Callable[..., Any]) -> None:
        """Find the place of the user's files."""
        super().__init__(function)  # type: ignore[no-untyped-call]
        self._locks: dict[str, int] = {}  # of loops that this process compiles

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Return the compiled loop for these arguments, or None where it must be compiled."""
        target_context.refresh()
        mine = Path(code_cache())
        places = [*_state.attached.items(), *((mine / folder_for(target), target) for target in targets())]
        for folder, target in places:
            loop = self._loaded(folder, target, sig, target_context)
            if loop is not None:
                _state.taken += folder in _state.attached
                return loop
        if self._waits_for_another(sig):
            loop = self._loaded(Path(self.cache_path), targets()[0], sig, target_context)
            if loop is not None:
                self._let_others_compile(sig)
                return loop
        if _state.attached and _state.depth == 0:
            _state.warn(
                f"{self._py_func.__qualname__}: not in the model's machine code. It is compiled here."
            )
        _state.depth += 1  # compiled now, and saved then
        return None

    def save_overload(self, sig: Any, data: Any) -> None:
        """Keep a loop that was compiled. Where no file can be written, the process goes on."""
        _state.depth = max(0, _state.depth - 1)
        try:
            self._keep(sig, data)
        finally:
            self._let_others_compile(sig)

    def _keep(self, sig: Any, data: Any) -> None:
        if not self._impl.check_cachable(data):
            return
        target = targets()[0]
        form = self._impl.reduce(data)
        try:
            self._save(Path(self.cache_path), target, sig, form)
        except OSError as error:
            _state.warn(f"{self.cache_path}: {error.strerror}. Each process compiles its loops itself.")
        self._record(target, sig, form)

    def _waits_for_another(self, sig: Any) -> bool:
        """Take the right to compile a loop; return whether another process had it, or may have had it just before.

        A process that ends gives it back. Where no file can be locked, and after `PATIENCE`, everybody compiles.
        """
        name = self._lock_name(sig)
        if name in self._locks:  # it failed to compile before
            return False
        folder, until = Path(self.cache_path), time.monotonic() + PATIENCE
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            lock = os.open(folder / name, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError:
            return False
        while time.monotonic() < until:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                time.sleep(0.02)
            else:
                self._locks[name] = lock
                return True
        os.close(lock)
        return False

    def _lock_name(self, sig: Any) -> str:
        loop = f"{self._impl.filename_base}{self._key(targets()[0], sig)}"
        return f"{hashlib.sha256(loop.encode()).hexdigest()[:24]}.lock"

    def _let_others_compile(self, sig: Any) -> None:
        lock = self._locks.pop(self._lock_name(sig), None)
        if lock is not None:
            os.close(lock)

    def _loaded(self, folder: Path, target: Target, sig: Any, target_context: Any) -> Any:
        """Return the loop that a folder holds; None if it holds none, or one that does not match its key."""
        try:
            form = self._file(folder).load(self._key(target, sig))
            if form is None:
                return None
            loop = self._impl.rebuild(target_context, form)
        except Exception as error:  # cut, or made with other libraries in spite of equal versions
            _state.warn(f"{folder}: cannot load machine code ({type(error).__name__}). It is compiled here.")
            return None
        if tuple(loop.signature.args) != tuple(_sigutils.normalize_signature(sig)[0]):
            _state.warn(f"{folder}: machine code is for other arguments. It is compiled here.")
            return None
        self._record(target, sig, form)
        return loop

    def _record(self, target: Target, sig: Any, form: Any) -> None:
        """Write a loop that Python called, while loops are recorded. The code of a loop includes the loops that it calls."""
        if _state.recorded is not None and _state.depth == 0:
            self._save(_state.recorded / folder_for(target), target, sig, form)

    def _save(self, folder: Path, target: Target, sig: Any, form: Any) -> None:
        """Write a loop into a folder.

        Raises:
            OSError: it cannot be written.
        """
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._file(folder).save(self._key(target, sig), form)

    def _file(self, folder: Path) -> Any:
        """Return numba's file of this function in a folder."""
        locator: _Locator = self._impl.locator
        return IndexDataCacheFile(str(folder), self._impl.filename_base, locator.get_source_stamp())  # type: ignore[no-untyped-call]

    def _key(self, target: Target, sig: Any) -> tuple[Any, ...]:
        """Return the key of a loop in numba's index, for a target."""
        arguments, _, code = self._index_key(sig, cpu_target.target_context.codegen())  # type: ignore[no-untyped-call]
        return arguments, target, code


_cgutils: Any = cgutils
_types: Any = types
F = TypeVar("F", bound=Callable[..., Any])
# An integer of a compiled loop: machine words of 64 bits, signed or not. No checker follows these through numba.
Int: TypeAlias = Any

_dispatchers: list[Any] = []


def compiled(function: F) -> F:
    """Compile `function` in nopython mode, cached on disk, without fast-math, releasing the interpreter lock."""
    dispatcher: Any = numba.njit(nogil=True, fastmath=False, error_model="numpy")(function)
    dispatcher._cache = LoopCache(function)
    _dispatchers.append(dispatcher)
    return cast(F, dispatcher)


def inlined(function: F) -> F:
    """Mark a small function of a hot loop to be pasted into the :func:`compiled` functions that call it."""
    return cast(F, numba.njit(inline="always", nogil=True, fastmath=False, error_model="numpy")(function))


def compilations() -> int:
    """Count the loops that this process compiled because the cache did not hold them."""
    return sum(sum(d.stats.cache_misses.values()) for d in _dispatchers)


def _intrinsic(function: Callable[..., Any]) -> Any:
    """Make a compiler intrinsic; its arguments are those of the compiled call, without the typing context."""
    return intrinsic(function)


@_intrinsic
def load64(typingctx: Any, array: Any, index: Any) -> Any:
    """`load64(bytes: uint8[:], i) -> uint64`: eight bytes from offset i, little-endian, unaligned, unchecked."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        data = _cgutils.create_struct_proxy(signature.args[0])(context, builder, args[0]).data
        pointer = builder.bitcast(builder.gep(data, [args[1]]), ir.IntType(64).as_pointer())
        load = builder.load(pointer)
        load.align = 1
        return load

    return types.uint64(array, types.int64), codegen


@_intrinsic
def store64(typingctx: Any, array: Any, index: Any, value: Any) -> Any:
    """`store64(bytes: uint8[:], i, x: uint64)`: the mirror of :func:`load64`."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        data = _cgutils.create_struct_proxy(signature.args[0])(context, builder, args[0]).data
        pointer = builder.bitcast(builder.gep(data, [args[1]]), ir.IntType(64).as_pointer())
        store = builder.store(args[2], pointer)
        store.align = 1
        return context.get_dummy_value()

    return types.void(array, types.int64, types.uint64), codegen


@_intrinsic
def prefetch(typingctx: Any, array: Any, index: Any) -> Any:
    """`prefetch(array, i)`: begin to load the cache line of element i of a flat view, and do not wait for it."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        data = _cgutils.create_struct_proxy(signature.args[0])(context, builder, args[0]).data
        pointer = builder.bitcast(builder.gep(data, [args[1]]), ir.IntType(8).as_pointer())
        number = ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [pointer.type, number, number, number])
        function = _cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0i8")
        builder.call(function, [pointer, number(0), number(3), number(1)])
        return context.get_dummy_value()

    return types.void(array, types.int64), codegen


@_intrinsic
def mul_high(typingctx: Any, a: Any, b: Any) -> Any:
    """`mul_high(a: uint64, b: uint64) -> uint64`: the upper 64 bits of the 128-bit product."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        wide = ir.IntType(128)
        product = builder.mul(builder.zext(args[0], wide), builder.zext(args[1], wide))
        return builder.trunc(builder.lshr(product, ir.Constant(wide, 64)), ir.IntType(64))

    return types.uint64(types.uint64, types.uint64), codegen


def _eight(builder: Any, data: Any, start: Any) -> Any:
    """Load eight float32 or float64 from element `start` on, unaligned, as float64."""
    kind = data.type.pointee
    pointer = builder.bitcast(builder.gep(data, [start]), ir.VectorType(kind, 8).as_pointer())
    load = builder.load(pointer)
    load.align = 4
    return builder.fpext(load, ir.VectorType(ir.DoubleType(), 8)) if kind == ir.FloatType() else load


def _sum_of_eights(builder: Any, count: Any, term: Callable[[Any], Any]) -> Any:
    """Sum `count` float64 terms, eight at a time: eight partial sums, added as a fixed tree.

    Written as vectors of 8, so that no processor and no optimizer has a choice of order.
    """
    wide = ir.VectorType(ir.DoubleType(), 8)
    total = _cgutils.alloca_once_value(builder, ir.Constant(wide, [0.0] * 8))
    step = ir.Constant(count.type, 8)
    with _cgutils.for_range(builder, builder.sdiv(count, step)) as loop:
        more = term(builder.mul(loop.index, step))
        builder.store(builder.fadd(builder.load(total), more), total)
    return _tree(builder, total)


def _tree(builder: Any, total: Any) -> Any:
    """Add the eight partial sums at `total` as a fixed tree."""
    sums = builder.load(total)
    parts = [builder.extract_element(sums, ir.Constant(ir.IntType(32), lane)) for lane in range(8)]
    while len(parts) > 1:
        parts = [builder.fadd(a, b) for a, b in zip(parts[::2], parts[1::2], strict=True)]
    return parts[0]


@_intrinsic
def squared_gap(typingctx: Any, array: Any, left: Any, right: Any, count: Any) -> Any:
    """`squared_gap(x: float32[:], i, j, n) -> float64`: the sum of (x[i+k] - x[j+k])² over k < n, n a multiple of 8.

    Term k goes to partial sum k mod 8; the sums are added as a fixed tree.
    """

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        data = _cgutils.create_struct_proxy(signature.args[0])(context, builder, args[0]).data
        _, left, right, count = args

        def term(offset: Any) -> Any:
            gap = builder.fsub(
                _eight(builder, data, builder.add(left, offset)),
                _eight(builder, data, builder.add(right, offset)),
            )
            return builder.fmul(gap, gap)

        return _sum_of_eights(builder, count, term)

    return types.float64(array, types.int64, types.int64, types.int64), codegen


@_intrinsic
def inner_product(typingctx: Any, first: Any, left: Any, second: Any, right: Any, count: Any) -> Any:
    """`inner_product(x, i, y, j, n) -> float64`: the sum of x[i+k]·y[j+k] over k < n, n a multiple of 8.

    x and y are flat views of float32 or float64; the order of additions is that of :func:`squared_gap`.
    """

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        x = _cgutils.create_struct_proxy(signature.args[0])(context, builder, args[0]).data
        y = _cgutils.create_struct_proxy(signature.args[2])(context, builder, args[2]).data
        _, left, _, right, count = args

        def term(offset: Any) -> Any:
            return builder.fmul(
                _eight(builder, x, builder.add(left, offset)), _eight(builder, y, builder.add(right, offset))
            )

        return _sum_of_eights(builder, count, term)

    return types.float64(first, types.int64, second, types.int64, types.int64), codegen


@_intrinsic
def trailing_zeros(typingctx: Any, value: Any) -> Any:
    """`trailing_zeros(x: uint64) -> int64`: the number of zero bits below the lowest set bit; 64 for 0."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.cttz(args[0], ir.Constant(ir.IntType(1), 0))

    return types.int64(types.uint64), codegen


@_intrinsic
def squared_gaps(
    typingctx: Any, array: Any, left: Any, others: Any, right: Any, stride: Any, count: Any
) -> Any:
    """`squared_gaps(x, i, y: float32[:], j, s, n) -> 4 float64`: :func:`squared_gap` of x at i and y at j, j+s, j+2s, j+3s.

    The same bits; four sums at once, because one alone waits for its own additions.
    """

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        flats = [
            _cgutils.create_struct_proxy(signature.args[k])(context, builder, args[k]).data for k in (0, 2)
        ]
        _, left, _, right, stride, count = args
        wide = ir.VectorType(ir.DoubleType(), 8)
        totals = [_cgutils.alloca_once_value(builder, ir.Constant(wide, [0.0] * 8)) for _ in range(4)]
        rows = [right]
        while len(rows) < len(totals):
            rows.append(builder.add(rows[-1], stride))

        step = ir.Constant(count.type, 8)
        with _cgutils.for_range(builder, builder.sdiv(count, step)) as loop:
            offset = builder.mul(loop.index, step)
            mine = _eight(builder, flats[0], builder.add(left, offset))
            for total, row in zip(totals, rows, strict=True):
                gap = builder.fsub(mine, _eight(builder, flats[1], builder.add(row, offset)))
                builder.store(builder.fadd(builder.load(total), builder.fmul(gap, gap)), total)
        sums = [_tree(builder, total) for total in totals]
        return context.make_tuple(builder, signature.return_type, sums)

    return _types.UniTuple(types.float64, 4)(
        array, types.int64, others, types.int64, types.int64, types.int64
    ), codegen
