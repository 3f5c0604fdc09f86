"""The texts of an application: questions, passages and answers, every one with a name that no other has."""

from __future__ import annotations

import tomllib
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

from generator.choices import Choices
from generator.turns import Turn


@cache
def _words() -> dict[str, Any]:
    return tomllib.loads((Path(__file__).parent / "data" / "content.toml").read_text())


class Writer:
    """Writes the texts of one application."""

    def __init__(self, choices: Choices) -> None:
        self.choices = choices
        self.chance = choices.random("content")
        self.words = _words()[choices["language"]]
        self._names: set[str] = set()

    def name(self) -> str:
        """A name that stands in no other text of this application."""
        while True:
            parts = _words()["names"]
            made = "".join(self.chance.choice(parts[part]) for part in ("first", "middle", "last")).title()
            if made not in self._names:
                self._names.add(made)
                return made

    def line(self, kind: str, name: str = "") -> str:
        line: str = self.chance.choice(self.words[kind])
        return line.format(name=name or self.name(), n=self.chance.randint(3, 99))

    def passage(self, style: str) -> str:
        name = self.name()
        lines = [self.line("sentences", name), self.line("sentences"), self.line("sentences")]
        form: str = _words()["styles"][style]
        return form.format(*lines, name=name, lower=name.lower())

    def question(self, plain: str) -> str:
        """The question as the user types it."""
        form: str = _words()["typing"][self.choices["typing"]]
        return form.format(question=plain, lie=self.line("sentences"))


def set_refusal(choices: Choices) -> str:
    """What the prompt has the model say word for word if it cannot answer."""
    text: str = _words()[choices["language"]]["set_refusal"]
    return text


def turns_of(choices: Choices, *, hops: int = 1) -> list[list[Turn]]:
    """The turns of an application, a conversation for each tenant."""
    writer = Writer(choices)
    tenants = choices.number("tenants")
    conversations: list[list[Turn]] = []
    for tenant in range(tenants):
        before: list[Turn] = []
        for number in range(choices.number("turns")):
            turn = _turn(writer, hops, tenant, number, before)
            if conversations and choices["equal_questions"] == "yes":
                turn.question = conversations[0][number].question
            before.append(turn)
        conversations.append(before)
    return conversations


def _turn(writer: Writer, hops: int, tenant: int, number: int, before: list[Turn]) -> Turn:
    choices, chance = writer.choices, writer.chance
    short = bool(before) and choices["follow_up"] == "short"
    plain = writer.line("follow_ups") if short else writer.line("questions")
    question = writer.question(plain) if number == 0 or choices["typing"] != "plain" else plain
    found = tuple(_passages(writer) for _ in range(hops))
    if hops > 1 and choices["evidence"] == "partly":
        found = ((), *found[1:])  # the first search finds nothing
    everything = [text for hop in found for text in hop]
    shown = _shown(choices["evidence"], everything, chance)
    name = writer.name()
    return Turn(
        id=f"{choices.seed}-{tenant}-{number}",
        tenant=f"tenant-{tenant}",
        thread=f"thread-{choices.seed}-{tenant}",
        question=question,
        rewritten=writer.line("questions"),
        queries=tuple(f"{name} {hop}" if hop else name for hop in range(hops)),
        found=found,
        shown=shown,
        nothing=writer.line("nothing"),
        answer=_answer(writer, shown, question, before),
        draft=writer.line("answers"),
        echoes=choices["answer"] == "echoes",
        before=tuple(before),
    )


def _passages(writer: Writer) -> tuple[str, ...]:
    if writer.choices["evidence"] == "nothing":
        return ()
    count = writer.choices.number("passages")
    if writer.choices["overlap"] == "windows":  # a sentence that was searched for, with those beside it
        lines = [writer.line("sentences") for _ in range(count + 2)]
        return tuple(" ".join(lines[at : at + 3]) for at in range(count))
    return tuple(writer.passage(writer.choices["style"] if at % 2 == 0 else "plain") for at in range(count))


def _shown(evidence: str, found: list[str], chance: Random) -> tuple[str, ...]:
    if evidence == "unshown":
        return ()
    if evidence == "partly" and len(found) > 1:
        dropped = chance.randrange(len(found))
        return tuple(text for at, text in enumerate(found) if at != dropped)
    return tuple(found)


def _answer(writer: Writer, shown: tuple[str, ...], question: str, before: list[Turn]) -> str:
    kind = writer.choices["answer"]
    plain = writer.line("answers")
    if kind == "repeats_last" and before:
        return before[-1].answer
    if kind == "repeats_question":
        return f"{question}\n{plain}"
    if kind == "quotes" and shown:
        return f"{plain}\n\n> {_sentence(shown[0])}"
    if kind == "repeats_passage" and shown:
        return shown[0]
    if kind == "refuses_as_told":
        return set_refusal(writer.choices)
    return writer.line("refusals") if kind == "refuses" or not shown else plain


def _sentence(passage: str) -> str:
    """The longest line of a passage: what a model that quotes would take."""
    return max(passage.splitlines(), key=len).strip()
