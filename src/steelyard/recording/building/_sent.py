"""What a turn's models were sent, as far as it tells what was asked."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from steelyard.recording.building._steps import Steps, is_telling
from steelyard.recording.building._texts import is_filled_in
from steelyard.recording.provenance import plain
from steelyard.recording.reading import Message, since_last_asked


def said_to_agent(turn: Steps, made: Sequence[int]) -> str:
    """The user's message, as it is, to a model that called tools for its answer."""
    sent = [one for at in made[-1:] for one in since_last_asked(_without_revisions(turn, at))]
    users = [one.text.strip() for one in sent if one.role == "user"]
    return users[0] if users and any(one.role == "tool" for one in sent) else ""


def asked_last(turn: Steps, made: Iterable[int]) -> list[str]:
    """What the answer's calls were sent, without the framework's own instructions and earlier turns."""
    found: dict[str, None] = {}
    for at in made:
        messages = _without_revisions(turn, at)
        latest = [*(one for one in messages if one.role == "system"), *since_last_asked(messages)]
        texts = [one.text for one in latest if one.text and one.role != "assistant"]
        texts = [text for text in texts if not is_filled_in(text, turn.instructions)]
        found.update(dict.fromkeys(texts or turn.calls[at].prompts))
    return list(found)


def _without_revisions(turn: Steps, at: int) -> Sequence[Message]:
    """What a call was sent before code asked for another version of what a model had replied in the turn."""
    messages = turn.models[at].messages
    replies = [plain(text) for call in turn.calls[:at] for text in call.replies if is_telling(text)]
    asked = [n for n, one in enumerate(messages) if one.role == "user"] if replies else []
    while len(asked) > 1 and any(reply in plain(messages[asked[-1]].text) for reply in replies):
        messages = messages[: asked.pop()]
    return messages


def is_prompt(text: str, turn: Steps) -> bool:
    """Whether a text is what a model was sent, with its instructions before what the user said."""
    whole = plain(text)
    rows = ([one for one in step.messages if one.role in ("system", "user")] for step in turn.models)
    sent = ([plain(one.text) for one in row] for row in rows)
    return any(len(parts) > 1 and all(part in whole != part for part in parts) for parts in sent)
