"""The demo: a LangChain chain over a small text about weighing, scored while it runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from langchain_core.runnables import Runnable

__all__ = ["demo_chain"]


def demo_chain() -> Runnable[str, str]:
    """The demo's chain, which answers by quotation, without a model or a key.

    It is an application to try `steelyard test` on, and the one that examples/golden gates:
    `steelyard test examples/golden/weighing.jsonl --app steelyard.cli.demo:demo_chain`.
    """
    from steelyard.cli.demo._chain import build_chain

    return build_chain()
