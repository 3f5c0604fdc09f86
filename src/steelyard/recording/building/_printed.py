"""What steps passed on that is no text, as it is printed: records, rows, lists of words."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from steelyard.record import text_of
from steelyard.recording.building._sources import Sources, Text
from steelyard.recording.building._steps import Step, Steps, is_telling
from steelyard.recording.building._titles import beside
from steelyard.recording.provenance import is_printed
from steelyard.recording.reading import (
    does_something,
    has_documents,
    is_schema,
    messages_in,
    state_of,
    strings_in,
)

_MOST_PRINTED = 50
_LONGEST_PRINTED = 50_000


def printed(turn: Steps, sources: Sources) -> tuple[list[Text], list[Text]]:
    """What steps passed on that is no text, as it is printed: records and rows; and, apart, lists of words.

    Documents, messages and calls of tools are left out: they are read as what they are. Words alone name
    things (tools, files, topics), and mostly tell of none. Titles and addresses of known passages are none
    either.
    """
    found: dict[str, Text] = {}
    words: set[str] = set()
    titles = _beside_passages(turn, sources)
    for passed in sources.passed:
        for name, value in (state_of(passed.value) or {}).items():
            if len(found) >= _MOST_PRINTED or not _is_record(value, titles) or _tells_of(turn.tools, value):
                continue
            text = str(value)
            if len(text) <= _LONGEST_PRINTED and (is_telling(text) or is_printed(text)):
                found.setdefault(text, Text(str(name), text, passed.at, passed.is_given))
                words.update([text] if _are_words(value) else ())
    whole = _not_within(found)
    return [one for one in whole if one.text not in words], [one for one in whole if one.text in words]


def _beside_passages(turn: Steps, sources: Sources) -> set[str]:
    """What tools returned in one entry with a passage that counts: where it is from."""
    known = {one.text.strip() for one in sources.found}
    return {text for step in turn.tools for text in beside(step.returned, known)} if known else set()


def _not_within(found: Mapping[str, Text]) -> list[Text]:
    return [one for text, one in found.items() if not any(text in other != text for other in found)]


def _are_words(value: Any) -> bool:
    return isinstance(value, (list, tuple)) and all(isinstance(one, str) for one in value)


def _is_record(value: Any, titles: set[str]) -> bool:
    state = {} if isinstance(value, (list, tuple)) else state_of(value)
    if (
        state is None
        or is_schema(value)
        or has_documents(value)
        or any(map(messages_in, (value, *state.values())))
    ):
        return False
    # Tools tell of themselves when they are printed. A stream is read, and is the user's.
    if any(map(does_something, value if isinstance(value, (list, tuple)) else state.values())):
        return False
    # A text that says something is looked for by itself.
    said = {text for _, text in strings_in(value)}
    return not any(map(is_telling, said)) and (not said or not said <= titles)


def _tells_of(tools: Iterable[Step], value: Any) -> bool:
    """Whether a value tells of tools that ran, by their names and what they were called with."""
    states = map(state_of, value if isinstance(value, (list, tuple)) else (value,))
    fields = [[one for one in state.values() if isinstance(one, (str, Mapping))] for state in states if state]
    return any({tool.name, text_of(tool.given)} <= set(map(text_of, one)) for one in fields for tool in tools)
