"""What a value is divided into: the passages of a list, or the whole of a text."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import islice
from typing import Any

from steelyard.record import Context, to_json_value
from steelyard.recording.provenance import finds_nothing, is_printed, json_strings, plain, word_count
from steelyard.recording.reading import is_question, passages_of

_EMPTY = "[]{}()\"' \t\n"
_LEAST = 4  # words; what is shorter is a value: a language, a name, a verdict


def parts_of(value: Any, text: str = "") -> Iterable[Context]:
    """The parts of a value, if it is a list of passages; else its whole text; nothing if it tells of nothing.

    Args:
        value: What a tool or a step returned.
        text: The same as the model was told it, if that is known.
    """
    said = value if isinstance(value, str) else None
    whole = text or said or json.dumps(to_json_value(value), ensure_ascii=False)
    if tells_nothing(whole):
        return ()
    rows = _rows(whole) if said is not None else _rows(to_json_value(value))
    is_text = len(rows) == 1 and rows[0].id is None
    if is_text and _says_more(whole, rows[0].text):
        return (Context(text=whole.strip(), rank=0),)
    if is_text and said is None:
        return parts_of(rows[0].text)  # a block of text may hold a list as Python or JSON shows it
    if _are_passages(rows, whole):
        return [one for one in rows if not finds_nothing(one.text)]
    return (Context(text=whole.strip(), rank=0),)


def _rows(value: object) -> list[Context]:
    return [one for one in passages_of(value) if one.text.strip()]


def _says_more(whole: str, text: str) -> bool:
    """Whether a value as JSON, or JSON in it, says anything beside its one text."""
    for part in islice(json_strings(whole), 1, None):
        if _says_more(part, text) if text in part else is_telling(part) and part.strip() not in text:
            return True
    return False


def _are_passages(rows: Sequence[Context], whole: str) -> bool:
    """Whether the parts of a value are passages, rather than cells of a table or fields of a status."""
    if len(rows) == 1:
        return rows[0].id is not None or len(rows[0].text) > len(whole) / 2
    return bool(rows) and all(is_telling(one.text) or is_printed(one.text) for one in rows)


def tells_nothing(text: str) -> bool:
    """Whether a text is an empty value as any language shows it, or says that nothing was found."""
    return not text.strip(_EMPTY) or finds_nothing(text)


def is_telling(text: str) -> bool:
    """Whether a text says something, rather than names a value."""
    # Most texts are long, and their first words tell.
    return len(text.split(None, _LEAST - 1)) == _LEAST or word_count(text) >= _LEAST


def shown_instead(text: str, metadata: Any, holds: Callable[[str], bool]) -> str:
    """The text of a document, or the text of its metadata that a prompt shows in its place.

    What is searched by may be a sentence, a summary or a question. The window around it, the whole of it or
    the answer then stands in the metadata, and is longer.

    Args:
        text: The document's own text.
        metadata: What stands about it, by name.
        holds: Whether a prompt holds a text.
    """
    values = metadata.values() if isinstance(metadata, Mapping) else ()
    longer = [one for one in values if isinstance(one, str) and len(one) > len(text) and is_telling(one)]
    for one in filter(holds, longer):
        # A prompt that shows both shows more than one text of the document; a question is asked, not shown.
        if plain(text) in plain(one) or is_question(text) or not holds(text):
            return one
    return text
