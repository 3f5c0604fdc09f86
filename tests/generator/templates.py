"""Prompts: those of the corpus, and those put together of its phrases."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from random import Random

from generator.choices import Choices
from generator.content import set_refusal

MADE = "made"
"""The name of a template that is put together anew for each application."""

_CORPORA = {False: "templates.toml", True: "heldout.toml"}


@dataclass(frozen=True, kw_only=True)
class Template:
    """One prompt, with `{context}`, `{question}` and sometimes `{history}` where texts are filled in."""

    name: str
    human: str
    system: str = ""

    @property
    def takes_history(self) -> bool:
        return "{history}" in self.human + self.system

    def messages(self) -> list[tuple[str, str]]:
        """Its messages with their places still open."""
        return [*([("system", self.system)] if self.system else []), ("human", self.human)]

    def text(self) -> str:
        """The same as one text."""
        return "\n\n".join(text for _, text in self.messages())

    def split(self) -> tuple[str, str]:
        """The part with the passages for a system message, and the part with the question for the user's.

        Agents keep the user's message as it came; all else stands before it.
        """
        return self.text().replace("{question}", "(see below)"), "{question}"


@cache
def _corpus(heldout: bool) -> Mapping[str, object]:
    return tomllib.loads((Path(__file__).parent / "data" / _CORPORA[heldout]).read_text())


@cache
def templates(heldout: bool) -> Mapping[str, Template]:
    """The templates of a part of the corpus by name."""
    made = [Template(**each) for each in _corpus(heldout)["template"]]  # type: ignore[attr-defined]
    return {each.name: each for each in made}


def names(heldout: bool) -> tuple[str, ...]:
    """What the axis of templates can be; those that are put together stand for half of them."""
    written = tuple(templates(heldout))
    return (*written, *(f"{MADE}{'_heldout' if heldout else ''}" for _ in range(len(written) // 2)))


def template_of(choices: Choices) -> Template:
    """The template of an application."""
    made = _named(choices["template"], choices.random("template"))
    if choices["answer"] != "refuses_as_told":
        return made
    rule = f'If you cannot answer, say exactly: "{set_refusal(choices)}"'
    if made.system:
        return replace(made, system=f"{made.system}\n{rule}")
    return replace(made, human=f"{rule}\n{made.human}")


def _named(name: str, chance: Random) -> Template:
    if name.startswith(MADE):
        return _made(name, name.endswith("_heldout"), chance)
    return {**templates(False), **templates(True)}[name]


def _made(name: str, heldout: bool, chance: Random) -> Template:
    phrases: Mapping[str, list[str]] = _corpus(heldout)["phrases"]  # type: ignore[assignment]
    opener, closer = chance.choice(phrases["openers"]), chance.choice(phrases["closers"])
    blocks = [
        _block(chance.choice(phrases["contexts"]), "{context}", chance),
        _block(chance.choice(phrases["questions"]), "{question}", chance),
    ]
    if chance.random() < 0.4:
        blocks.reverse()
    gap = chance.choice(("\n\n", "\n"))
    if chance.random() < 0.4:
        return Template(name=name, system=opener, human=gap.join([*blocks, closer]).rstrip())
    if "{context}" in blocks[0] and chance.random() < 0.4:
        return Template(name=name, system=gap.join([opener, blocks[0], closer]).rstrip(), human=blocks[1])
    return Template(name=name, human=gap.join([opener, *blocks, closer]).rstrip())


def _block(heading: str, place: str, chance: Random) -> str:
    if heading.startswith("<"):
        return f"{heading}\n{place}\n</{heading[1:]}"
    if heading.startswith("[") and heading.endswith("]"):
        return f"{heading}\n{place}\n[/{heading[1:]}"
    return f"{heading}{chance.choice((' ', chr(10)))}{place}"
