"""Texts out of LlamaIndex's objects, told by what they have rather than by their classes.

Runs away from the host's thread. Whatever an application put into its own events and responses comes through
here, so nothing is taken for granted.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

from steelyard.record import Context, text_of, to_json_value
from steelyard.recording.building import shown_instead
from steelyard.recording.provenance import find_passages, plain
from steelyard.recording.reading import ANSWERS, attribute, number_of

_ANSWERED = (*ANSWERS, "text", "content", "message")
NO_ANSWER = "Empty Response"
"""What LlamaIndex says where nothing was left to answer from; no model is asked then."""


def answer_of(result: Any) -> str:
    """What was answered, out of whatever an engine, an agent, a workflow or a model returned."""
    if result is None or isinstance(result, str):
        return text_of(result)
    if isinstance(result, Mapping):
        if any(isinstance(value, (Iterator, AsyncIterator)) for value in result.values()):
            return ""  # a stream that is still to be read
        return _first(result, _ANSWERED, answer_of) or (json.dumps(to_json_value(result)) if result else "")
    if isinstance(result, (bool, int, float, list, tuple, set)):
        return ""
    if type(result).__name__ == "PydanticResponse":
        return text_of(result) if result.response is not None else ""
    return _answer_in(result)


def _answer_in(result: Any) -> str:
    fields = fields_of(result)
    rest = (answer_of(attribute(result, name)) for name in ("content", "result", "structured_response"))
    found = _first(fields, _ANSWERED, answer_of) or next(filter(None, rest), "")
    silent = not fields.keys().isdisjoint(_ANSWERED) or isinstance(attribute(result, "content"), str)
    if found or silent or not fields:
        return found
    # A structured response, or an event of the application's own: its JSON is what there is to read.
    whole = attribute(result, "model_dump_json")
    return text_of(whole()) if callable(whole) else ""


def reply_of(response: Any) -> tuple[str, tuple[str, ...]]:
    """What a model replied, as text and as the arguments of the tools that it called, each as JSON."""
    if response is None or isinstance(response, str):
        return text_of(response), ()
    message = attribute(response, "message")
    if message is None:
        text = attribute(response, "text")
        return text_of(text) if text is not None else answer_of(response), ()  # a form that was filled in
    blocks = attribute(message, "blocks") or ()
    called = [
        attribute(block, "tool_kwargs") for block in blocks if attribute(block, "block_type") == "tool_call"
    ]
    more = attribute(message, "additional_kwargs")
    beside = more.get("tool_calls") if isinstance(more, Mapping) else None
    called += [_arguments(each) for each in beside] if isinstance(beside, (list, tuple)) else []
    arguments = (
        each if isinstance(each, str) else json.dumps(to_json_value(each)) for each in called if each
    )
    return text_of(attribute(message, "content")), tuple(dict.fromkeys(arguments))


def _arguments(call: Any) -> Any:
    """The arguments in a provider's own account of a tool call."""
    function = call.get("function", call) if isinstance(call, Mapping) else attribute(call, "function")
    if isinstance(function, Mapping):
        return function.get("arguments", function.get("input"))
    return attribute(function, "arguments") if function is not None else call


def texts_of(prompt: Any) -> tuple[str, ...]:
    """What a model was sent, one text a message."""
    if isinstance(prompt, (list, tuple)):
        return tuple(text_of(attribute(message, "content")) for message in prompt)
    return (text_of(prompt),)


def nodes_of(result: Any) -> list[Any]:
    """The nodes in what a retriever, an engine or a tool returned; none where it holds no nodes."""
    if (raw := attribute(result, "raw_output")) is not None:
        return nodes_of(raw)
    if isinstance(sources := attribute(result, "source_nodes"), (list, tuple)):
        result = sources
    if not isinstance(result, (list, tuple)):
        return []
    return [each for each in result if attribute(each, "node") is not None]


def result_of(result: Any) -> Any:
    """What a workflow returned: the result in its stop event, or itself."""
    inner = attribute(result, "result")
    return result if inner is None else inner


def fields_of(value: Any) -> dict[str, Any]:
    """The fields of an event, a model or a dataclass, those given freely included."""
    fields = dict(attribute(value, "__dict__") or {})
    for name in ("_data", "_result"):
        private = attribute(value, "__pydantic_private__") or {}
        extra = private.get(name) if isinstance(private, Mapping) else None
        if name == "_data" and isinstance(extra, Mapping):
            fields.update(extra)
        elif name == "_result" and extra is not None:
            fields["result"] = extra
    return {name: each for name, each in fields.items() if not name.startswith("_")}


def _first(fields: Mapping[Any, Any], names: Sequence[str], text: Any) -> str:
    for name in names:
        if (value := fields.get(name)) is not None and (found := text(value)):
            return str(found)
    return ""


_WHOLLY = 0.9


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
                id=None if (id_ := attribute(each.node, "node_id")) is None else text_of(id_),
                score=number_of(attribute(each, "score")),
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
            return text_of(attribute(node, "text")).strip()
        return whole if self.holds(whole) else self._shown(node, whole, bare)

    def _shown(self, node: Any, whole: str, bare: str) -> str:
        """What prompts show of a node that they do not show whole."""
        head = whole.removesuffix(bare).strip()
        has_head = bool(head) and self.holds(head)
        is_there = self.holds(bare) or any(one.found for one in find_passages([bare], self._prompts))
        if has_head and not is_there:
            return head  # what it was found by, and not what it says
        shown = shown_instead(bare, attribute(node, "metadata"), self.holds)
        if shown != bare or bare == whole:
            return shown
        # In other words of the application, without LlamaIndex's head.
        return bare if self.holds(bare) or (is_there and not has_head) else whole

    def holds(self, text: str) -> bool:
        """Whether a prompt of the turn holds a text."""
        form = plain(text)
        return any(text in prompt for prompt in self._prompts) or any(form in one for one in self._plain)

    def shows(self, text: str) -> bool:
        """The same, whatever the prompt did to the text: escaped, say."""
        return self.holds(text) or any(one.seen >= _WHOLLY for one in find_passages([text], self._prompts))

    @cached_property
    def _plain(self) -> list[str]:
        return [plain(prompt) for prompt in self._prompts]
