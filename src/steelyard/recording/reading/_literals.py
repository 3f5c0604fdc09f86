"""A reader for values as Python shows them: `[Document(metadata={'a': 1}, page_content='...'), ...]`.

Nothing is evaluated. Objects become mappings of their keywords, so that a Document or a node reads like its
JSON. Each character is looked at once; what is not a value as Python shows it gives None.
"""

from __future__ import annotations

import re
from typing import Any

# Possessive: a string without an end would be tried from every quote again.
_STRING = re.compile(
    r"""[bBrRuUfF]{0,2}(?:'([^'\\]*+(?:\\.[^'\\]*+)*+)'|"([^"\\]*+(?:\\.[^"\\]*+)*+)")""", re.DOTALL
)
_ESCAPED = re.compile(r"\\(?:u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|x([0-9a-fA-F]{2})|(\n)|(.))", re.DOTALL)
_LETTERS = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", "v": "\v", "a": "\a", "0": "\0"}
_NAME = re.compile(r"[A-Za-z_][\w.]{0,200}+")
_NUMBER = re.compile(r"[-+]?[0-9][0-9_]{0,40}(?:\.[0-9]{0,40})?(?:[eE][-+]?[0-9]{1,4})?")
_OPAQUE = re.compile(r"<(?:[A-Z]\w{0,80}+\.\w{1,80}+: '(\w{1,80})'>|[^<>]{0,2000}>)")
"""What shows no value, and a member of an enum, which shows its own."""
_SPACE = re.compile(r"\s*+")
_CLOSING = {"[": "]", "(": ")", "{": "}"}
_CONSTANTS = {"None": None, "True": True, "False": False, "null": None, "true": True, "false": False}
# Far below Python's own limit, which the reader must not reach in a host's thread.
_DEPTH = 40


class _NotShown(Exception):
    """The text is not a value as Python shows it."""


def read_shown(text: str) -> Any:
    """The value that a text shows, with objects as mappings of their keywords; None where it shows none.

    >>> read_shown("[Document(id='d1', page_content='Rome.'), 3]")
    [{'id': 'd1', 'page_content': 'Rome.'}, 3]
    >>> read_shown("page_content='Rome.' metadata={}")
    {'page_content': 'Rome.', 'metadata': {}}
    >>> read_shown("[ChatMessage(role=<MessageRole.USER: 'user'>, content='Rome?')]")
    [{'role': 'user', 'content': 'Rome?'}]
    """
    reader = _Reader(text)
    try:
        value = reader.fields("") if _is_bare(text) else reader.value(0)
        reader.skip()
    except (_NotShown, ValueError, OverflowError):
        return None
    # What is left over shows that it was prose that began like a value.
    return value if reader.at == len(text) else None


def _is_bare(text: str) -> bool:
    """Whether fields stand there without the name of their object, as `str` shows a pydantic model."""
    name = _NAME.match(text)
    return name is not None and text[name.end() : name.end() + 1] == "="


class _Reader:
    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0

    def skip(self) -> None:
        space = _SPACE.match(self.text, self.at)
        self.at = space.end() if space else self.at

    def peek(self) -> str:
        self.skip()
        return self.text[self.at : self.at + 1]

    def value(self, depth: int) -> Any:
        if depth > _DEPTH:
            raise _NotShown
        first = self.peek()
        if first in _CLOSING and first:
            return self._collection(first, depth)
        if string := _STRING.match(self.text, self.at):
            self.at = string.end()
            return _decoded(string[1] if string[1] is not None else string[2])
        if number := _NUMBER.match(self.text, self.at):
            self.at = number.end()
            return _number(number[0])
        if opaque := _OPAQUE.match(self.text, self.at):
            self.at = opaque.end()
            return opaque[1]
        return self._named(depth)

    def _named(self, depth: int) -> Any:
        name = _NAME.match(self.text, self.at)
        if name is None:
            raise _NotShown
        self.at = name.end()
        if self.text[self.at : self.at + 1] != "(":
            return _CONSTANTS.get(name[0])
        self.at += 1
        return self.fields(")", depth + 1)

    def fields(self, end: str, depth: int = 0) -> Any:
        """Keywords up to the closing sign; those without a name become `args`."""
        found: dict[str, Any] = {}
        unnamed: list[Any] = []
        while (mark := self.peek()) != end:
            if not mark:
                raise _NotShown
            if mark == ",":
                self.at += 1
                continue
            name = _NAME.match(self.text, self.at)
            if name and self.text[name.end() : name.end() + 1] == "=":
                self.at = name.end() + 1
                found[name[0]] = self.value(depth)
            else:
                unnamed.append(self.value(depth))
        self.at += len(end)
        if not found and len(unnamed) == 1:
            return unnamed[0]
        return found | {"args": unnamed} if unnamed else found

    def _collection(self, opening: str, depth: int) -> Any:
        self.at += 1
        closing = _CLOSING[opening]
        items: list[Any] = []
        pairs: dict[Any, Any] = {}
        while (mark := self.peek()) != closing:
            if not mark:
                raise _NotShown
            if mark == ",":
                self.at += 1
                continue
            item = self.value(depth + 1)
            if opening == "{" and self.peek() == ":":
                self.at += 1
                # Keys of any kind become text: the values are read like JSON from here on.
                pairs[item if isinstance(item, str) else str(item)[:200]] = self.value(depth + 1)
            else:
                items.append(item)
        self.at += 1
        return pairs if pairs or (opening == "{" and not items) else items


def _number(text: str) -> int | float:
    plain = text.replace("_", "")
    return int(plain) if plain.lstrip("+-").isdigit() else float(plain)


def _decoded(source: str) -> str:
    return _ESCAPED.sub(_character, source) if "\\" in source else source


def _character(match: re.Match[str]) -> str:
    digits = match[1] or match[2] or match[3]
    if digits:
        code = int(digits, 16)
        return chr(code) if code <= 0x10FFFF else "\N{REPLACEMENT CHARACTER}"
    return "" if match[4] else _LETTERS.get(match[5], match[5])
