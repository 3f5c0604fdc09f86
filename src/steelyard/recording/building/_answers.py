"""Which of several texts that a run returned is its answer, where no name says so."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from steelyard.recording.building._asked import Asked
from steelyard.recording.building._steps import MOSTLY, Steps, is_telling, size_of
from steelyard.recording.provenance import (
    ModelCall,
    calls_behind,
    find_passages,
    form_of,
    is_history,
    is_intermediate_output,
    is_turn,
    json_strings,
    plain,
    sections,
    word_count,
    words,
)
from steelyard.recording.reading import ANSWERS, is_question, strings_in

_MUCH_SHORTER = 0.5
_LABEL = 3  # verdicts have no more words
_LABEL_ENDS = re.compile(r"[.:;!,\n]|\s[-\u2013\u2014]\s")
_QUOTE = r"['\"`*]{1,2}"


def named_in_form(answer: str) -> str:
    """What a form in JSON or in tags calls its answer, as applications take it out; any other text as it is.

    >>> named_in_form('{"thoughts": "Two dogs.", "answer": "Six euros."}'), named_in_form('{"total": 6}')
    ('Six euros.', '{"total": 6}')
    """
    parts = sections(answer) if answer.startswith("<") else []
    tagged = {one.label.lower(): one.text for one in parts if one.form == "tag"}
    form = tagged if parts and len(tagged) == len(parts) else form_of(answer)
    told = (form.get(name) for name in ANSWERS)
    return next((text.strip() for text in told if isinstance(text, str) and text.strip()), answer)


def is_form(answer: str, prompts: Iterable[str]) -> bool:
    """Whether a model filled in a form: in JSON, or between lines of marks that its prompt shows."""
    lines = [line.strip() for line in answer.splitlines() if line.strip()]
    marks = {line for line in lines if not line[0].isalnum() and not line[-1].isalnum()}
    shown = marks and {line.strip() for prompt in prompts for line in prompt.splitlines()} & marks
    return bool(form_of(answer)) or (len(shown) > 1 and lines[0] in shown)


def said_last(texts: Sequence[str], calls: Sequence[ModelCall]) -> str:
    """Of several texts the one that a model said last, whole or in a form; none if they do not hang together.

    What holds all the others was put together from them. What is much shorter than another is a title or a
    label of it.
    """
    return _made_of_all(texts) or _last_said(texts, calls)


def is_one_of_several(answer: str, texts: Sequence[str], calls: Sequence[ModelCall]) -> bool:
    """Whether models said others of these texts, too, so that only time and length tell the answer."""
    said = _said(texts, calls)
    return answer in said and len(said) > 1


def is_gone_into(text: str, calls: Sequence[ModelCall]) -> bool:
    """Whether the last call was shown a text that an earlier one answered with: it wrote about that."""
    return bool(_said([text], calls[:-1])) and _is_shown(text, calls[-1])


def is_status(text: str, calls: Sequence[ModelCall]) -> bool:
    """Whether a text of few words is no model's, although models said more: how a run ended."""
    if is_telling(text) or not any(is_telling(call.reply) for call in calls):
        return False
    row = f" {' '.join(words(text))} "
    # Code may have cut it out of a reply.
    is_cut = word_count(text) > 1 and any(row in f" {' '.join(words(call.reply))} " for call in calls)
    return not is_cut and not calls_behind(calls, text).known


def _made_of_all(texts: Sequence[str]) -> str:
    whole = max(texts, key=len, default="")
    parts = [text.strip() for text in texts if text != whole]
    is_made = len(parts) > 1 and all(part in whole for part in parts)
    return whole if is_made and not is_history(whole) else ""


def _last_said(texts: Sequence[str], calls: Sequence[ModelCall]) -> str:
    made = _said(texts, calls) or _made_by_code(texts, calls)
    sizes = {text: size_of(text) for text in made}
    most = max(sizes.values(), default=0)
    able = [text for text, size in sizes.items() if size > most * _MUCH_SHORTER]
    last = max(able, key=lambda text: made[text][-1].started, default="")
    return last if last and _hang_together(last, texts, made, calls) else ""


def _hang_together(
    last: str, texts: Sequence[str], made: Mapping[str, Sequence[ModelCall]], calls: Sequence[ModelCall]
) -> bool:
    """Whether each text that models said has to do with the one that was said last.

    What code put between two calls came of the first one: the rows of a query. What was written about an
    earlier draft led to the last one.
    """
    maker = made[last][-1]
    said = {last, *(one.reply for one in calls if is_telling(one.reply) and one.reply.strip() not in texts)}
    between = [text for text in texts if text not in made and _is_shown(text, maker)]

    def hangs(text: str, by: ModelCall) -> bool:
        is_linked = _is_shown(text, maker) or any(_is_shown(one, by) for one in said)
        return by is not maker and (is_linked or any(not _is_shown(one, by) for one in between))

    # What that call alone said beside it is another field of a form.
    return all(any(hangs(text, by) for by in made[text]) for text in made if text != last)


def _said(texts: Sequence[str], calls: Sequence[ModelCall]) -> dict[str, list[ModelCall]]:
    """The texts that a model said, whole or in a form, each with the calls that did.

    A call that only routes did not answer, whatever it left in the state.
    """
    makers: dict[str, list[ModelCall]] = {}
    for call in calls:
        for said in {said.strip() for one in call.replies for said in json_strings(one)}:
            makers.setdefault(said, []).append(call)
    exact = {text: makers[text.strip()] for text in texts if text.strip() in makers}
    return {text: by for text, by in exact.items() if _may_answer(text, by[-1])}


def _made_by_code(texts: Sequence[str], calls: Sequence[ModelCall]) -> dict[str, list[ModelCall]]:
    """The texts that code made of what a model said, each with the last call that it is made of.

    What that call was shown was there before, however much of it the reply repeats.
    """
    behind = {text: calls_behind(calls, text).made for text in texts}
    made = {text: calls[at[-1]] for text, at in behind.items() if at}
    return {text: [by] for text, by in made.items() if not _is_shown(text, by) and _may_answer(text, by)}


def _may_answer(text: str, maker: ModelCall) -> bool:
    lines = [line for line in text.split("\n") if line.strip()]
    is_helper = is_intermediate_output([text]) or (len(lines) > 1 and all(map(is_question, lines)))
    return not is_helper and is_turn([maker], answer=text)


def asks_of_reply(asked: Asked, turn: Steps) -> bool:
    """Whether a call by itself is about what a model replied before: it is asked it, or says if it is so."""
    said = [(plain(reply), call) for call in turn.earlier for reply in call.replies if is_telling(reply)]
    if said and _says_if_so(turn, [one for one, _ in said]):
        return True
    question = plain(asked.question) if "question_guessed" in asked.notes else ""
    about = (call for one, call in said if one in question and not is_question(asked.question))
    # A rewriter that was asked to return what it need not rewrite says what the user said.
    return any(not any(question in plain(text) for text in call.prompts) for call in about)


def _says_if_so(turn: Steps, said: Iterable[str]) -> bool:
    """Whether a model was shown what was said before, and replied with a form that says true or false."""
    fields = (value for call in turn.calls for value in form_of(call.reply).values())
    prompts = "\n".join(text for call in turn.calls for text in call.prompts)
    return any(isinstance(value, bool) for value in fields) and any(one in plain(prompts) for one in said)


def before_verdict(replies: Sequence[str], calls: Sequence[ModelCall]) -> str:
    """Of the replies that a conversation ended with the last one, or what it is a verdict on.

    A team ends with "APPROVE", perhaps with reasons: a label that the last speaker's own instructions offer.
    Who wrote the reply before it has other instructions, and the last speaker was shown that reply.
    """
    last = replies[-1].strip() if replies else ""
    label, *reasons = _LABEL_ENDS.split(last, maxsplit=1)
    by = next((call for call in reversed(calls) if call.reply.strip() == last), None)
    if not 0 < len(label.split()) <= _LABEL or by is None or not by.prompts:
        return replies[-1] if replies else ""
    is_label = _is_one_of_two if any(map(str.strip, reasons)) else _is_offered
    if not is_label(label, by.prompts[0]):
        return replies[-1]
    makers = {call.reply.strip(): call for call in calls if call.prompts[:1] != by.prompts[:1]}
    about = (text for text in reversed(replies[:-1]) if text.strip() in makers and len(text) > len(label))
    return next((text for text in about if _is_shown(text, by)), replies[-1])


def _is_offered(label: str, instructions: str) -> bool:
    """Whether instructions offer a label: in capitals, in quotes, or before a comma or a colon."""
    told = re.escape(label)
    set_off = rf"['\"`*]{told}['\"`*.,:]|(?<!\w){told}[,:]"
    return re.search(rf"(?<!\w){told}(?!\w)" if label.isupper() else set_off, instructions) is not None


def _is_one_of_two(label: str, instructions: str) -> bool:
    """Whether instructions offer a label beside another one, each in quotes: one alone may head answers."""
    told, other = rf"{_QUOTE}{re.escape(label)}{_QUOTE}", rf"{_QUOTE}[^'\"`*\n]{{1,40}}{_QUOTE}"
    between = r"\s?[,;/|]?\s?\w{0,4}\s?"
    return re.search(rf"{told}{between}{other}|{other}{between}{told}", instructions) is not None


def revised(answer: str, texts: Sequence[str], calls: Sequence[ModelCall]) -> str:
    """The last revision of an answer among these texts: made of it and of what was written about it."""
    makers = {call.reply.strip(): call for call in calls if call.reply.strip()}
    first = makers.get(answer.strip())
    if first is None:
        return answer
    later = [makers[text.strip()] for text in dict.fromkeys(texts) if text.strip() in makers]
    about = [call for call in later if call.started > first.started and _is_shown(answer, call)]
    anew = [call for call in about if any(_is_shown(one.reply, call) for one in about if one is not call)]
    able = [call for call in anew if not is_intermediate_output(call.replies)]
    return max(able, key=lambda call: call.started).reply if able else answer


def edited(answer: str, said: Sequence[str], returned: Any, calls: Sequence[ModelCall]) -> str:
    """The answer as a person changed it on its way, if the run returned that; else the answer itself.

    Args:
        answer: What a model said; empty if what was returned does not tell it.
        said: What persons said to the run on its way.
        returned: What the run returned.
        calls: What models were asked.
    """
    shown = {text for _, text in strings_in(returned)} if said else set[str]()
    drafts = [answer] if answer else [call.reply for call in calls if call.reply]
    fresh = (text for text in reversed(said) if text in shown)
    return next((text for text in fresh if any(_is_alike(text, one) for one in drafts)), answer)


def _is_alike(text: str, other: str) -> bool:
    there, back = find_passages([text], [other])[0], find_passages([other], [text])[0]
    return max(there.seen, back.seen) >= MOSTLY


def _is_shown(text: str, call: ModelCall | None) -> bool:
    return call is not None and plain(text) in plain("\n".join(call.prompts))
