"""Passages cut out of the answer's own prompt, where nothing else has them.

A prompt that middleware or plain code fills by itself (`similarity_search` inside `@dynamic_prompt`) leaves
no run, no document and no key behind. What stands below a line such as `Context:` is then all there is.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from steelyard.record import Context
from steelyard.recording.provenance import passages_of

_HEADING = re.compile(
    r"[^\n]{0,200}\b(?:contexts?|documents|passages|sources|excerpts|knowledge)\b[^\n:]{0,60}:[ \t]{0,8}",
    re.IGNORECASE,
)
_END = re.compile(
    r"[ \t#*]{0,8}(?:user |original |follow.?up )?(?:question|query|answer|input|task|chat history"
    r"|conversation|instructions?)\b[ \t*]{0,4}:?[^\n]{0,2000}",
    re.IGNORECASE,
)
_LEAST_WORDS = 4


def passages_under_headings(prompts: Iterable[str]) -> list[Context]:
    """The passages below headings of messages; none where a prompt has no such heading."""
    return [
        passage
        for prompt in dict.fromkeys(prompts)
        for passage in passages_of(_block(prompt))
        if len(passage.text.split()) >= _LEAST_WORDS
    ]


def _block(prompt: str) -> str:
    """What stands between a heading and the question, or the end of the message."""
    lines = prompt.split("\n")
    start = next((at for at, line in enumerate(lines) if _HEADING.fullmatch(line)), None)
    if start is None:
        return ""
    below = lines[start + 1 :]
    end = next((at for at, line in enumerate(below) if _END.fullmatch(line)), len(below))
    return "\n".join(below[:end]).strip()
