"""Model calls that come after an answer and are about it: they answer nothing themselves."""

from __future__ import annotations

import re
from collections.abc import Sequence

from steelyard_opentelemetry._span import Node, ParsedSpan

_ABOUT = re.compile(
    r"\b(?:titles?|headline|subject line)\b"
    r"|\b(?:name|label) (?:this|the) (?:chat|conversation|thread|session)\b"
    r"|\bworth remembering\b|\b(?:extract|update|store)\b[^.\n]{0,40}\b(?:facts|memor(?:y|ies)|preferences)\b"
    r"|\b(?:follow[- ]?up|related|next|further) (?:questions?|prompts?|queries)\b"
    r"|\bquestions?\b[^.\n]{0,40}\b(?:ask|next)\b"
    r"|\b(?:judge|grade|rate|score|evaluate|assess)\b[^.\n]{0,60}\b(?:answer|response|reply)\b"
    r"|\b(?:is|does|has) (?:this|the|that) (?:answer|response|reply)\b"
    r"|\b(?:grounded(?:ness)?|hallucinat\w{1,6}|fact[- ]check\w{0,4}|faithful\w{0,4}|moderat\w{1,5}|safe)\b",
    re.IGNORECASE,
)
_ANEW = re.compile(
    r"\b(?:re-?write|re-?phrase|revise|correct(?:ed)? (?:it|the)|improve|fix|polish|refine|translate|shorten"
    r"|final answer|combine|merge|summari[sz]e)\b",
    re.IGNORECASE,
)
_MOST = 20_000
_FEWEST_WORDS = 2


def drop_followup_calls(calls: Sequence[tuple[Node, ParsedSpan]]) -> list[tuple[Node, ParsedSpan]]:
    """Calls without those that were shown an earlier reply and asked about it, not for another one."""
    return [call for call in calls if not any(_is_about(call, other) for other in calls if other is not call)]


def _is_about(call: tuple[Node, ParsedSpan], other: tuple[Node, ParsedSpan]) -> bool:
    node, parsed = call
    before, said = other
    if before.span.end > node.span.start or len(said.answer.split()) < _FEWEST_WORDS:
        return False
    texts = [message.text[:_MOST] for message in parsed.messages]
    if not any(said.answer.strip() in text for text in texts):
        return False
    # What the passages and the answer say is not what was asked for.
    ordered = "\n".join(text.replace(said.answer.strip(), "") for text in (*texts[:1], *texts[-1:]))
    return bool(_ABOUT.search(ordered)) and not _ANEW.search(ordered)
