"""`dptext preview`: one sentence, without Spark."""

from __future__ import annotations

from typing import Annotated

import typer

from dptext_spark.cli.options import Config, Json, Override
from dptext_spark.report.terminal.console import progress, show, write_json


def preview(
    text: Annotated[str, typer.Argument(help="A sentence, in quotes.")],
    config: Config = None,
    overrides: Override = None,
    top: Annotated[int, typer.Option(min=1, help="Candidates listed for each word.")] = 4,
    as_json: Json = False,
) -> None:
    """Draw one sentence without Spark, with a fresh key: what becomes of each word, and why."""
    from dataclasses import replace

    from dptext_spark.config.load import load_model_config
    from dptext_spark.model.compile import prepare
    from dptext_spark.model.preview import preview as draw
    from dptext_spark.model.preview import shown
    from dptext_spark.randomness.draws import RunKey
    from dptext_spark.text.names.compiled_lists import CompiledLists

    settings = load_model_config(config, overrides or ())
    # With fluent draws the sentence is also drawn without, at the same ε.
    both = settings.mechanism.reads_context and settings.run.artifact is None
    with progress() as say:
        privatizer, _ = prepare(settings, say)
        plain = prepare(settings.without_context(), say)[0] if both else None
    left: tuple[str, ...] = ()
    if settings.lists:
        lists, left = CompiledLists.of_files(settings.lists, RunKey.generate())
        lists.check_shares(privatizer.vocabulary, privatizer.policy.kept_words())
        if lists.names is not None:
            privatizer = privatizer.with_names(lists.names)
            plain = None if plain is None else plain.with_names(lists.names)
    result = replace(draw(privatizer, text, top=top), lists_left_out=left)
    if plain is not None:
        result = replace(result, plain=draw(plain, text, top=top).output)
    if as_json:
        write_json(result.as_dict())
    else:
        show(shown(result))
