"""What a turn's models were sent, as far as it tells what was asked, and questions that a model wrote."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from steelyard.recording.building._steps import Step, Steps, is_telling
from steelyard.recording.building._texts import is_filled_in
from steelyard.recording.provenance import is_intermediate_output, plain
from steelyard.recording.reading import Message, has_history, is_question, since_last_asked

MOST_LINES = 60
"""Of a question and what follows it: each end is looked for in every earlier prompt."""


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


def standalone_of(turn: Steps, question: str) -> str | None:
    """The question as a model rewrote it for a retriever, in a conversation."""
    first = next((step for step in turn.retrievals if isinstance(step.given, str)), None)
    if first is None or first.is_within("tool"):
        return None
    writers = [step for step in turn.models if step.at < first.at]
    query = str(first.given).strip()
    if not query or plain(query) == plain(question) or not (writers or turn.in_conversation):
        return None
    if not is_conversation(turn, writers):
        return None
    row, own = query.split(), question.split()
    is_passage = len(row) > max(40, 4 * len(own)) and not is_question(query)
    return None if is_passage or is_intermediate_output([query]) else query


def is_conversation(turn: Steps, writers: Sequence[Step]) -> bool:
    """Whether there was an earlier exchange, by the input or by what these calls were sent."""
    is_later = turn.in_conversation or has_history(turn.given)
    return is_later or any(message.role == "assistant" for step in writers for message in step.messages)


def shared_end(text: str, model: Step, turn: Steps) -> str:
    """The end of what a model was sent, from a line or a label on, that other prompts hold; all if none does.

    The words before it are the template's: "Rewrite the user's message: ...".
    """
    calls = (one.call for one in turn.models if one is not model and not one.is_within("tool"))
    others = [plain(prompt) for call in calls if call for prompt in call.prompts]
    lines = text.split("\n")[-MOST_LINES:]
    ends = (part for at in range(len(lines)) for part in _from_line("\n".join(lines[at:])))
    able = (end for end in ends if is_telling(end) or is_question(end) or plain(end) in others)
    return next((end for end in able if any(plain(end) in one for one in others)), text)


def _from_line(text: str) -> tuple[str, str]:
    """A text, and what stands behind a label that it begins with."""
    return text.strip(), text.partition(": ")[2].strip()


def said_before_rewriting(question: str, turn: Steps) -> str | None:
    """What a model of an earlier run was sent when it wrote a question, if the turn's own prompts hold it.

    Its whole message, or a line of it that asks, the last first. Empty if they hold none; None if no model
    wrote the question.
    """
    own, form = "\n".join(plain(prompt) for call in turn.calls for prompt in call.prompts), plain(question)
    wrote = [call for call in turn.earlier if is_question(question) and form in map(plain, call.replies)]
    sent = (text for call in reversed(wrote) for text in reversed(call.prompts))
    able = (one for text in sent for one in _said_in(text) if plain(one) not in ("", form))
    return next((one for one in able if plain(one) in own), "" if wrote else None)


def _said_in(text: str) -> Iterator[str]:
    """A text, and what asks in it: lines, and what stands behind their labels."""
    yield text.strip()
    lines = reversed(text.split("\n")[-MOST_LINES:])
    yield from (one for line in lines for one in _from_line(line) if is_question(one))
