"""Which texts beside documents are passages: those in the answer's prompt that came from outside a model."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property

from steelyard.record import Context
from steelyard.recording.building._beside import MORE, surrounds
from steelyard.recording.building._sources import PUT_IN, Sources, Text
from steelyard.recording.building._steps import (
    MOSTLY,
    WHOLLY,
    Steps,
    is_telling,
    is_written,
    parts_of,
    share_left,
)
from steelyard.recording.building._titles import is_column, of_main_columns, origins_of, without_headings
from steelyard.recording.provenance import (
    ModelCall,
    find_passages,
    form_of,
    is_history,
    is_printed,
    json_strings,
    names_passages,
    plain,
    unescaped,
)
from steelyard.recording.reading import ANSWERS, earlier_messages, messages_in, since_last_asked, state_of

_SLOT = re.compile(r"\{[A-Za-z_]\w{0,40}\}")
_GIVEN = "contexts: a text of the input stands in the prompt beside the passages, and is not counted as one"
_PUT_IN = "contexts: a message that code wrote in the user's place counts as one; see turn.contexts"


class _Shown:
    """What is known of a turn that a text is held against, each as `plain` writes it."""

    def __init__(self, turn: Steps, sources: Sources, prompts: Sequence[str], question: str) -> None:
        self.asked = plain(question)
        self._tight = self.asked.replace(" ", "")  # JSON may be printed with other spaces
        self._turn, self._sources, self._prompts = turn, sources, prompts
        self.alone = {call.prompts[0] for call in turn.calls if len(call.prompts) == 1}
        """What models were sent as their only message: such a text is a prompt itself."""

    # Most texts are the question or a prompt, so that the rest is not read.
    @cached_property
    def _sent_alone(self) -> set[str]:
        return set(map(plain, self.alone))

    @cached_property
    def queries(self) -> set[str]:
        """What was looked up, and by which tools."""
        return {plain(one) for one in (*self._sources.queries, *(tool.name for tool in self._turn.tools))}

    @cached_property
    def history(self) -> list[str]:
        return [plain(text) for text in (*earlier_messages(self._turn.given), *self._turn.said)]

    @cached_property
    def prompts(self) -> list[str]:
        return [plain(text) for text in self._prompts]

    @cached_property
    def known(self) -> list[str]:
        return [plain(one.text) for one in self._sources.documents]

    def says(self, text: str, *, is_put_in: bool) -> bool:
        """Whether a text is the question, a query, a part of the history, or a prompt."""
        if text.replace(" ", "") in self._tight or text in self.queries or text in self._sent_alone:
            return True
        label, asked, rest = text.partition(self.asked) if self.asked else ("", "", text)
        if asked and not rest and not is_telling(label):
            return True  # the first line of a conversation: "user: ..."
        if any(text in said for said in self.history):
            return True
        others = [one for one in self.prompts if one != text] if is_put_in else self.prompts
        return bool(self.asked) and _is_prompt(text, self.asked, others)

    def about(self) -> list[str]:
        return origins_of([one.text for one in self._sources.documents], self._sources, self._turn)

    def knows(self, text: str) -> bool:
        """Whether a text is made of known passages, or a part of one."""
        return any(other in text or text in other for other in self.known)

    def joined(self, text: str) -> tuple[list[str], bool]:
        """What stands behind known passages in a text; and whether it has more, all between blank lines.

        What is right above a passage may be its head: what framework and code tell about it.
        """
        blocks = text.split("\n\n")
        others = [one for one in blocks if is_telling(one) and not self.knows(plain(one))]
        whole = [one.text.strip() for one in self._sources.documents if one.text.strip() in text]
        end = max((text.rindex(one) + len(one) for one in whole), default=len(text))
        behind = [one for one in text[end:].split("\n\n")[1:] if one in others]
        is_mixed = bool(others) and any(plain(one) in self.known for one in blocks)
        return [one for one in behind if not self.says(plain(one), is_put_in=False)], is_mixed


def shown_texts(
    turn: Steps, sources: Sources, prompts: Sequence[str], *, question: str, has_documents: bool
) -> tuple[list[Context], list[str]]:
    """The texts beside documents that stand in the answer's prompt and that no model wrote.

    Args:
        turn: The turn.
        sources: What came into it.
        prompts: What the calls behind the answer were sent.
        question: What was asked.
        has_documents: Whether documents stand in the prompt; then what the root was given does not count.

    Returns:
        The passages, and what is doubtful.
    """
    if not prompts or not sources.texts:
        return [], []
    # A few words beside documents, whatever their name, tell where those are from.
    texts = [
        one for one in sources.texts if not has_documents or is_telling(one.text) or is_printed(one.text)
    ]
    able, has_more = _able(_unspoken(texts, turn), _Shown(turn, sources, prompts, question))
    remembered = _remembered(turn) if able else ()
    able = [one for one in able if plain(one.text) not in remembered]
    shown = of_main_columns(_divided(turn, _in_prompt(able, prompts, question), able, sources), sources)
    found = _without_forms(
        _not_written(turn, _without_known(shown, sources), sources), turn, has_documents=has_documents
    )
    found = without_headings(found, sources)
    counted = _chosen(found, has_documents=has_documents, is_asked=bool(question))
    chosen, is_left = _smallest(counted), bool(question) and len(counted) < len(found)
    passages = [replace(part, seen=None) for one in chosen for part in parts_of(one.text)]
    is_put_in = any(one.name == PUT_IN for one in chosen)
    doubts = ((MORE, has_more), (_GIVEN, is_left), (_PUT_IN, is_put_in))
    return passages, [note for note, is_so in doubts if is_so]


def _without_forms(texts: Sequence[Text], turn: Steps, *, has_documents: bool) -> list[Text]:
    """The texts without those that tell how to reply: they name each field of a form that a model filled in.

    If there is nothing else, rows may have the same names as the form; and a reply may repeat a row.
    """
    forms = [(form, call.reply) for call in turn.calls if (form := form_of(call.reply))]
    left = [t for t in texts if not any(_names_fields(t.text, form) and r not in t.text for form, r in forms)]
    return left if left or has_documents else list(texts)


def _names_fields(text: str, form: Iterable[str]) -> bool:
    low = text.lower()
    return all(f'"{name}"' in low for name in form)


def _remembered(turn: Steps) -> set[str]:
    """What an assistant said, whole, by the conversations that steps hand on in the state of a thread.

    Not the answer behind the user's last words: it may be a passage, word for word.
    """
    states = (state_of(value) for step in turn.steps for value in (step.given, step.returned))
    parts = (part for state in states if state for part in state.values() if isinstance(part, (list, tuple)))
    answer, said = plain(turn.answer), set[str]()
    for messages in map(messages_in, parts):
        latest = since_last_asked(messages)
        before = messages[: len(messages) - len(latest)]
        said |= {plain(one.text) for one in before if one.role == "assistant"}
        said |= {plain(one.text) for one in latest if one.role == "assistant"} - {answer}
    return said


def _unspoken(texts: Sequence[Text], turn: Steps) -> list[Text]:
    """The texts without those that stand in one entry with what a model replied in an earlier turn.

    Such an entry is an exchange of the conversation: what was asked, and what was replied.
    """
    if not turn.earlier:
        return list(texts)
    rows = {one.row for one in texts if one.row is not None and is_written(one.text, turn.earlier)}
    spoken = [(one, plain(one.text)) for one in texts if one.row in rows]
    left = [one for one in texts if one.row not in rows]
    # A step that writes the exchanges down puts labels before them.
    told = [one.text for one, _ in spoken]
    return [one for one in left if not _only_labels(one, told)] if told else left


def _able(texts: Sequence[Text], shown: _Shown) -> tuple[list[Text], bool]:
    """The texts that may be passages; and whether one holds more than the known passages it is made of."""
    able: list[Text] = []
    has_more = False
    for one in texts:
        # A prompt is long, and mostly handed on as it is.
        if one.text in shown.alone:
            continue
        text = plain(one.text)
        if shown.says(text, is_put_in=one.name == PUT_IN) or is_history(one.text):
            continue
        if not shown.knows(text):
            able.append(one)
            continue
        behind, is_mixed = shown.joined(one.text)
        able += (replace(one, text=block, name="") for block in behind if not is_history(block))
        if is_mixed or surrounds(text, shown.known, about=shown.about):
            has_more = has_more or any(text in prompt for prompt in shown.prompts)
    return able, has_more


def _in_prompt(texts: Sequence[Text], prompts: Sequence[str], question: str) -> list[Text]:
    sightings = find_passages([one.text for one in texts], prompts, question=question) if texts else ()
    pairs = zip(texts, sightings, strict=True)
    shown = [(one, seen.position) for one, seen in pairs if seen.found and seen.seen >= MOSTLY]
    # What a step cleaned stands where the text that it was made of is found, too.
    exact = {at: plain(one.text) for one, at in shown if any(one.text.strip() in text for text in prompts)}
    left = [one for one, at in shown if not _is_likeness(one.text, exact.get(at), prompts)]
    return [one for one in left if not _is_template(one.text, prompts)]


def _is_likeness(text: str, other: str | None, prompts: Sequence[str]) -> bool:
    """Whether a text is another form of one that stands in its place as it is, rather than a part of it."""
    form = plain(text)
    if other is None or form in other or other in form or any(text.strip() in prompt for prompt in prompts):
        return False
    return min(len(form), len(other)) > MOSTLY * max(len(form), len(other))


def _divided(turn: Steps, shown: Sequence[Text], able: Sequence[Text], sources: Sources) -> list[Text]:
    """The texts in the prompt; instead of one that others were joined to, those others.

    Of a passage and a list's joined form that holds it, only the longer one is found in a prompt. What a
    model quoted out of a passage is no part of it.
    """
    # In a list as JSON its parts are escaped.
    forms = [(one, plain(unescaped(one.text))) for one in able]
    found: dict[Text, None] = {}
    for one in shown:
        text = plain(unescaped(one.text))
        held = [(other, part) for other, part in forms if part in text and part != text]
        own = set(_not_written(turn, [other for other, _ in held], sources)) if held else ()
        parts = [(other, part) for other, part in held if other in own]
        is_joined = bool(parts) and _is_joined(one, text, parts, able, turn, sources)
        found.update(dict.fromkeys([other for other, _ in parts] if is_joined else [one]))
    return list(found)


def _is_joined(
    one: Text,
    text: str,
    parts: Sequence[tuple[Text, str]],
    able: Sequence[Text],
    turn: Steps,
    sources: Sources,
) -> bool:
    """Whether a text says nothing but its parts and labels, and what models replied before."""
    told = [part for _, part in parts]
    rest = share_left(text, told)
    if rest <= 1 - WHOLLY or (rest <= MOSTLY and is_column(parts, able)):
        return True
    said = list(_said_in(one, turn))
    beside, whole = share_left(text, [*told, *map(plain, said)]), [other.text for other, _ in parts]
    return beside <= MOSTLY and _only_labels(one, [*whole, *said], origins_of(whole, sources, turn))


def _said_in(joined: Text, turn: Steps) -> Iterator[str]:
    """What models replied before, whole or in a form, and was put into a text."""
    for call in _replied_before(turn, joined):
        texts = (text for reply in call.replies for text in json_strings(reply) if is_telling(text))
        yield from (text for text in texts if text.strip() in joined.text)


def _only_labels(joined: Text, parts: Iterable[str], origins: Iterable[str] = ()) -> bool:
    """Whether no line says anything but what the parts say, and where they are from: "Source: page-3.md"."""
    rest = joined.text
    for part in sorted(filter(None, map(str.strip, parts)), key=len, reverse=True):
        rest = rest.replace(part, "\n")
    for origin in origins:
        rest = re.sub(rf"(?<!\w){re.escape(origin)}(?!\w)", "\n", rest)
    return not any(map(is_telling, rest.split("\n")))


def _without_known(texts: Sequence[Text], sources: Sources) -> list[Text]:
    """The texts that were not made of known passages, however those are written in them."""
    known = [one.text for one in sources.documents]
    if not known:
        return list(texts)
    return [one for one in texts if not any(seen.found for seen in find_passages(known, [one.text]))]


def _is_template(text: str, prompts: Sequence[str]) -> bool:
    """Whether a text has slots that were filled in the prompt, so that it is the template around the rest."""
    slots = _SLOT.findall(text)
    return bool(slots) and not any(all(slot in prompt for slot in slots) for prompt in prompts)


def is_filled_in(text: str, templates: Iterable[str]) -> bool:
    """Whether a text has all that one of these templates has around its places."""
    return any(all(piece.strip() in text for piece in _SLOT.split(one)) for one in templates)


def _is_prompt(text: str, asked: str, prompts: Sequence[str]) -> bool:
    """Whether a text is a prompt, or a part of one with the question in it.

    A passage may repeat the question; the prompt then asks it once more beside the passage.
    """
    # A passage may hold a message of a few words: a query.
    if any(prompt in text and len(prompt) > MOSTLY * len(text) for prompt in prompts):
        return True
    if asked not in text:
        return False
    return not any(text in prompt and asked in prompt.replace(text, " ", 1) for prompt in prompts)


def _not_written(turn: Steps, texts: Sequence[Text], sources: Sources) -> list[Text]:
    """The texts that no model wrote before they were first seen, alone or in parts.

    What a model only copied out of its own prompt is evidence still, and so is what an answer quotes.
    """
    unseen = (s for s in turn.models if s.call and s.call.prompts and not s.call.replies and not s.failed)
    # After a call whose reply nobody saw it cannot be known that no model wrote a text.
    since = min((step.ended for step in unseen if step.ended is not None), default=math.inf)
    known = [one for one in texts if one.is_given or one.at < since]
    replied = {one for one in known if _is_replied(one, turn)}
    whole = [plain(one.text) for one in known if one not in replied]
    own = (one for one in known if one not in replied or _is_extract(one, whole, turn, sources))
    return [one for one in own if not is_written(one.text, _before(turn, one))]


def _is_extract(one: Text, whole: Iterable[str], turn: Steps, sources: Sources) -> bool:
    """Whether a copied text takes the place of what it was copied out of, none of which is shown whole."""
    form = plain(one.text)
    return not any(form in text for text in whole) and _is_copied(one, turn, sources)


def _is_copied(one: Text, turn: Steps, sources: Sources) -> bool:
    """Whether a text stands in one that came from outside before it: a quote, which a model picked."""
    text = plain(one.text)
    is_able = text not in turn.answered and is_telling(text)
    whole = (other for other in sources.texts if other.at < one.at and text in plain(other.text) != text)
    return is_able and any(not is_written(other.text, _before(turn, other)) for other in whole)


def _before(turn: Steps, one: Text) -> list[ModelCall]:
    """The calls that had replied when a text was first seen: of earlier runs, and of the turn itself.

    And any but the answer's that said just this: spans tell a list as it is at last, with what was appended.
    """
    text = plain(one.text)
    calls = [step.call for step in turn.models if step.call and text not in turn.answered]
    same = (call for call in calls if text in map(plain, call.replies))
    return [*turn.earlier, *_replied_before(turn, one), *same]


def _replied_before(turn: Steps, one: Text) -> Iterator[ModelCall]:
    for step in turn.models:
        if step.call is not None and step.ended is not None and step.ended <= one.at:
            yield step.call


def _is_replied(one: Text, turn: Steps) -> bool:
    """Whether a text is what a call replied, and was seen nowhere before.

    Its prompt may hold it, as in "say exactly: ...": still only the reply brought it into the turn.
    """
    is_answer = (text := plain(one.text)) == plain(turn.answer)
    # A thread's state keeps the answer of the turn before under the same name.
    earlier = turn.earlier if one.name in ANSWERS else ()
    return any(
        text == part or (is_answer and text in part)
        for call in (*earlier, *_replied_before(turn, one))
        for reply in call.replies
        for part in map(plain, json_strings(reply))
    )


def _chosen(texts: Sequence[Text], *, has_documents: bool, is_asked: bool) -> list[Text]:
    """Those that count: what was made on the way, and of what the root was given that which is named so.

    Only if there is nothing else, anything that the root was given counts; but where the question was not
    found, any of that may be it.
    """
    made = [one for one in texts if not one.is_given]
    given = [one for one in texts if one.is_given]
    named = [one for one in given if names_passages(one.name)]
    if has_documents or made or named:
        return [*made, *named]
    return given if is_asked else []


def _smallest(texts: Sequence[Text]) -> list[Text]:
    """The texts without those that are others joined, and without small parts of one: a title, a query."""
    forms = {one: plain(one.text) for one in texts}
    left = dict(forms)
    for one, text in forms.items():
        parts = [other for other, part in forms.items() if part in text and part != text]
        is_joined = bool(parts) and share_left(text, [forms[other] for other in parts]) <= MOSTLY
        for other in [one] if is_joined else parts:
            left.pop(other, None)
    return list(left)
