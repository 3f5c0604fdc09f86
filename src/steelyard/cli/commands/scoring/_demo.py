"""`steelyard demo`: a real LangChain chain, scored without a key or a network."""

from __future__ import annotations

from typing import Annotated

import typer


def demo(
    db: Annotated[str, typer.Option("--db", metavar="FILE", help="Where the scores go.")] = "steelyard.db",
    model: Annotated[
        str,
        typer.Option(
            metavar="M",
            help="Answer with this model (needs OPENAI_API_KEY or --base-url) instead of by quotation.",
        ),
    ] = "",
    base_url: Annotated[str, typer.Option(metavar="URL", help="The model's server.")] = "",
) -> None:
    """Watch a RAG chain being scored.

    A LangChain chain answers questions over a text about weighing, once as it is and once with facts
    invented into its answers. Both are recorded by the callback handler, scored in the background by the
    local judge, and compared. It needs no key and no network, and takes a few seconds.

    A key in the environment is not used unless `--model` asks for it.

    **Examples**

    - `steelyard demo`
    - `steelyard demo --model gpt-4o-mini`
    - `steelyard demo --model qwen3 --base-url http://127.0.0.1:8000/v1`
    """
    from rich.console import Console

    from steelyard.errors import MissingDependency

    try:
        import langchain_core  # noqa: F401 - the demo's own files need it
    except ImportError:
        raise MissingDependency("langchain-core", extra="langchain") from None
    from steelyard.cli.demo._play import play

    raise typer.Exit(
        play(Console(highlight=False), database=db, model=model or None, base_url=base_url or None)
    )
