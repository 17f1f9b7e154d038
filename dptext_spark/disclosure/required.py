"""What is released by saying that a requirement holds or is broken."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from dptext_spark.config.figures import is_restricted
from dptext_spark.config.requirements import Requirement
from dptext_spark.errors import SettingsError
from dptext_spark.guarantee import Guarantee

HEADING = "What is released in clear"


def not_audited(row_key: str | None) -> str:
    """Return that the written table cannot be audited against its source; an empty text where a row key lets it."""
    if row_key is not None:
        return ""
    return (
        "the table cannot be audited against its source afterwards: there is no row_key, and nothing else joins their rows; a "
        "unique column that is named as row_key lets it"
    )


def check_measurable(require: Sequence[Requirement[str]], guarantee: Guarantee, *, bounded: bool) -> None:
    """Refuse a requirement of a figure that no run of a model has, before anything is written.

    Args:
        require: of the settings.
        guarantee: of the model.
        bounded: whether a budget bounds ε of a record.

    Raises:
        SettingsError: ε of a record, where ε is for each unit of distance.
    """
    if not (guarantee.adds_up or bounded) and any(one.subject == "record_epsilon" for one in require):
        raise SettingsError(
            "require: 'record_epsilon' has no figure by this mechanism, whose ε is for each unit of distance between two words; "
            "valid: leave it out, or a mechanism whose ε adds up over words (`dptext mechanisms`)."
        )


def bits(require: Sequence[Requirement[str]], *, bounded: bool) -> Iterator[str]:
    """Yield the sentence on requirements of figures that depend on the private text, where there are any.

    Args:
        require: of the settings.
        bounded: whether a budget bounds ε of a record.
    """
    some = [str(one) for one in require if is_restricted(one.subject, bounded=bounded)]
    if some:
        yield (
            f"Whether each of these requirements holds, is broken or was not measured: {'; '.join(some)}. The figures depend on "
            "the private text and stay restricted; each answer is one bit of it, which the exit code, the summary and the report "
            "release, and no guarantee covers it. Another limit asks for another bit."
        )
