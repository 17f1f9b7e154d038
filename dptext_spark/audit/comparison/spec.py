"""What a comparison is asked for: mechanisms with their settings, a grid of ε for each, levels of risk, and sizes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass

from pydantic_core import PydanticCustomError

from dptext_spark.audit.comparison.frontier import LEAST_POINTS, check_levels
from dptext_spark.audit.deniability.deniability import check_epsilons
from dptext_spark.audit.options import ComparisonOptions, takes
from dptext_spark.config.file import override
from dptext_spark.config.model import ModelConfig
from dptext_spark.config.values import parse_mechanism
from dptext_spark.encoder.weights import require_encoders
from dptext_spark.errors import SettingsError, require_choice
from dptext_spark.mechanisms import Mechanism, mechanism_named
from dptext_spark.runtime.display import cut, line


@dataclass(frozen=True, eq=False)
class ComparisonSpec(ComparisonOptions):
    """What is compared.

    Attributes:
        curves: mechanisms by the name of their curve.
        epsilons: the grid of each curve.
        levels: of risk; None for round ones.

    Examples:
        >>> spec = audit.ComparisonSpec.of(config, "custext", ["2,8"], records=20, attacked=5)
        >>> spec.epsilons
        {'custext': [2.0, 8.0]}
    """

    curves: dict[str, Mechanism]
    epsilons: dict[str, list[float]]
    levels: list[float] | None = None

    def __repr__(self) -> str:
        """Return the curves and how many ε there are."""
        epsilons = sum(len(grid) for grid in self.epsilons.values())
        return line("ComparisonSpec", cut(", ".join(self.curves), 120), f"{epsilons:,} ε")

    @classmethod
    @takes(ComparisonOptions)
    def of(
        cls,
        config: ModelConfig,
        mechanisms: str,
        epsilons: Sequence[str],
        levels: str | None = None,
        *,
        options: ComparisonOptions,
    ) -> ComparisonSpec:
        """Read what stands on a command line.

        Args:
            config: a mechanism that is named without fields takes those of the settings, where they name the same one.
            mechanisms: names with commas between them, each with fields behind colons, such as `tem,diffractor:form=tem`.
            epsilons: numbers with commas between them, for all; `NAME=numbers` for one curve.
            levels: as those, of risk.
            options: not this argument itself, but each field of it by its name.

        Raises:
            SettingsError: an unknown mechanism or field; a grid that is empty, unsorted or shorter than two; a size below 2; an
                encoder that is neither folder nor package, or whose extra is not installed.
            DataError: a folder that holds no encoder that is supported.
        """
        curves: dict[str, Mechanism] = {}
        for text in mechanisms.split(","):
            name = text.strip()
            if name in curves:
                raise SettingsError(f"mechanisms: {name!r} is named twice; valid: each once.")
            curves[name] = _mechanism(name, config.mechanism)
        grids = dict(_grids(epsilons, list(curves)))
        missing = [name for name in curves if name not in grids and "" not in grids]
        if missing:
            raise SettingsError(
                f"epsilons: none given for {', '.join(missing)}; valid: {LEAST_POINTS} or more, each above the last."
            )
        wanted = None if levels is None else check_levels("levels", _numbers("levels", levels))
        require_encoders(options.encoder, None)
        grid = {name: grids.get(name) or grids[""] for name in curves}
        return cls(curves, grid, wanted, **vars(options))


def _mechanism(text: str, base: Mechanism) -> Mechanism:
    """Return a mechanism from `name:field=value:field=value`."""
    name, *fields = text.split(":")
    kind = mechanism_named("mechanisms", name)
    given = override({}, [f"mechanism.{field}" for field in fields]).get("mechanism", {})
    if "epsilon" in given:
        raise SettingsError(f"mechanisms: {text!r} sets ε; valid: epsilons, such as {name}=1,2,5.")
    if not given and kind is type(base):
        return base
    values = asdict(base) if kind is type(base) else {}
    try:
        return parse_mechanism({"name": name} | values | given)
    except PydanticCustomError as error:
        raise SettingsError(str(error)) from None


def _grids(texts: Sequence[str], names: Sequence[str]) -> Iterator[tuple[str, list[float]]]:
    """Yield (curve or nothing for all, its ε)."""
    seen: set[str] = set()
    for text in texts:
        name, equals, numbers = text.rpartition("=")
        if equals:
            require_choice("epsilons", name.strip(), names)
        if name.strip() in seen:
            raise SettingsError(f"epsilons: given twice for {name.strip() or 'all'}; valid: once.")
        seen.add(name.strip())
        grid = _numbers("epsilons", numbers)
        if len(grid) < LEAST_POINTS:
            raise SettingsError(
                f"epsilons: {grid} given; valid: {LEAST_POINTS} or more, each above the last."
            )
        yield name.strip(), check_epsilons("epsilons", grid)


def _numbers(field: str, text: str) -> list[float]:
    try:
        return [float(one) for one in text.split(",") if one.strip()]
    except ValueError:
        raise SettingsError(f"{field}: {text!r} given; valid: numbers with commas between them.") from None
