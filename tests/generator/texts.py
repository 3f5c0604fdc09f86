"""How passages are written into a prompt, and whether a text stands in another."""

from __future__ import annotations

import html
import json
from collections.abc import Callable, Sequence


def title_of(at: int) -> str:
    """What a page is called, where pages have titles."""
    return f"Page {at} of the handbook"


JOINERS: dict[str, Callable[[Sequence[str]], str]] = {
    "blank": "\n\n".join,
    "line": "\n".join,
    "numbered": lambda texts: "\n\n".join(f"[{at}] {text}" for at, text in enumerate(texts, 1)),
    "labelled": lambda texts: "\n\n".join(
        f"[Source {at}: page-{at}.md]\n{text}" for at, text in enumerate(texts, 1)
    ),
    "sources": lambda texts: "\n\n".join(
        f"Source: page-{at}.md\nContent: {text}" for at, text in enumerate(texts)
    ),
    "xml": lambda texts: "\n".join(
        f'<document index="{at}">\n{text}\n</document>' for at, text in enumerate(texts)
    ),
    "escaped": lambda texts: "".join(f"<doc>{html.escape(text)}</doc>" for text in texts),
    "json": lambda texts: json.dumps([{"content": text, "score": 0.5} for text in texts]),
    "json_words": lambda texts: json.dumps(list(texts), ensure_ascii=False),
    "repr": lambda texts: str(list(texts)),
    "dashes": "\n---\n".join,
    "bullets": lambda texts: "\n".join(f"- {text}" for text in texts),
    "headed": lambda texts: "\n\n".join(f"## {title_of(at)}\n{text}" for at, text in enumerate(texts)),
    "titles": lambda texts: "\n\n".join(f"### Document {at}\n{text}" for at, text in enumerate(texts, 1)),
}


def squeezed(text: str) -> str:
    """A text with its white space made even."""
    return " ".join(text.split())


def forms(text: str) -> list[str]:
    """What a text becomes when it is escaped."""
    escaped = json.dumps(text)[1:-1]
    made = [text, escaped, json.dumps(text, ensure_ascii=False)[1:-1], repr(text)[1:-1], html.escape(text)]
    made += [
        json.dumps(escaped)[1:-1],
        repr(escaped)[1:-1],
        repr(json.dumps(text, ensure_ascii=False)[1:-1])[1:-1],
    ]
    # Python escapes one kind of quotes where a text around it has both kinds.
    made += [one.replace("'", "\\'") for one in (repr(text)[1:-1], repr(repr(text)[1:-1])[1:-1])]
    return [squeezed(each) for each in made]


def place(text: str, whole: str) -> int:
    """Where a text stands in another in any of its forms; -1 if nowhere."""
    within = squeezed(whole)
    places = [within.find(form) for form in forms(text)]
    return min((at for at in places if at >= 0), default=-1)
