"""How the compiled loops are compiled: numba with a cache of their own, and the intrinsics that they use."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias, TypeVar, cast

import numba
from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic

from dptext_spark.runtime.loop_cache import LoopCache

_cgutils: Any = cgutils
_types: Any = types
F = TypeVar("F", bound=Callable[..., Any])
# An integer of a compiled loop: machine words of 64 bits, signed or not, which no checker follows through numba.
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
    """Return how many loops this process had to compile because the cache did not hold them."""
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
    """Sum `count` float64 terms, eight at a time: eight partial sums, which are added as a fixed tree.

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
        found = [_tree(builder, total) for total in totals]
        return context.make_tuple(builder, signature.return_type, found)

    return _types.UniTuple(types.float64, 4)(
        array, types.int64, others, types.int64, types.int64, types.int64
    ), codegen
