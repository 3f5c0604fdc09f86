"""Nodes as contexts, each with the text that the model was shown."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import Any

from steelyard.record import Context, text_of
from steelyard.recording.building import shown_instead
from steelyard.recording.provenance import find_passages, plain
from steelyard_llamaindex.building._extract import get


class Nodes:
    """Reads nodes, which have two texts: with the metadata that LlamaIndex shows a model, and without.

    Args:
        prompts: What the turn's models were sent. A node whose text stands there without its metadata has
            that text, since code of the application's own may have put it there.
    """

    def __init__(self, prompts: Sequence[str] = ()) -> None:
        self._prompts = prompts

    def contexts(self, nodes: Iterable[Any], *, start: int = 0) -> tuple[Context, ...]:
        """The nodes in order, without those that have no text, such as images."""
        contexts = (
            Context(
                text=self._text(each.node),
                id=_text_or_none(get(each.node, "node_id")),
                score=_number_or_none(get(each, "score")),
                rank=rank,
            )
            for rank, each in enumerate(nodes, start)
        )
        return tuple(context for context in contexts if context.text)

    def _text(self, node: Any) -> str:
        try:
            from llama_index.core.schema import MetadataMode

            whole = text_of(node.get_content(metadata_mode=MetadataMode.LLM)).strip()
            bare = text_of(node.get_content(metadata_mode=MetadataMode.NONE)).strip()
        except Exception:  # noqa: BLE001 - nodes may be anybody's
            return text_of(get(node, "text")).strip()
        if self.holds(whole):
            return whole
        shown = shown_instead(bare, get(node, "metadata"), self.holds)
        if shown != bare or bare == whole:
            return shown
        return bare if self.holds(bare) or self._is_rewritten(whole, bare) else whole

    def _is_rewritten(self, whole: str, bare: str) -> bool:
        """Whether prompts show a node's text in other words of the application, without LlamaIndex's head."""
        if self.holds(whole.removesuffix(bare)):
            return False
        return any(one.found for one in find_passages([bare], self._prompts))

    def holds(self, text: str) -> bool:
        """Whether a prompt of the turn holds a text."""
        form = plain(text)
        return any(text in prompt for prompt in self._prompts) or any(form in one for one in self._plain)

    @cached_property
    def _plain(self) -> list[str]:
        return [plain(prompt) for prompt in self._prompts]


def _text_or_none(value: Any) -> str | None:
    return None if value is None else text_of(value)


def _number_or_none(value: Any) -> float | None:
    try:
        return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else None
    except OverflowError:
        return None
