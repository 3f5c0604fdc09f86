"""Every message that a user can meet says what to do.

An error says which values are right, or begins a clause with what to do (`give ...`, `write ...`, `run ...`).
A warning may also say what becomes of it by itself. The words stand in the source, so that this can be seen
without raising.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from steelyard.cli._checkup import MENDS
from steelyard.sinks._client import _CAUSES

ROOT = Path(__file__).parents[2]
FILES = sorted([*(ROOT / "src").rglob("*.py"), *(ROOT / "integrations").glob("*/src/**/*.py")])

ERRORS = {"BadParameter", "ConfigurationError", "InvalidGoldenSet", "SteelyardError", "UsageError"}
OF_DATA = {
    "InvalidRecord": "is said of one line of a file, with its number: correct what is wrong with it",
    "EndpointError": "is told of one case of a golden set; the application's own reply is what to look at",
}
BY_CAUSE = {
    "HTTPError",
    "JudgeError",
    "JudgeRejected",
    "JudgeUnavailable",
    "MalformedReply",
    "RateLimited",
    "SinkError",
}
"""Have a cause, a word that ends up on a Score or in counts; `steelyard doctor` says what mends each."""
INTERNAL = {
    "AskedWrongly": "caught by the middleware that asks in parts",
    "AssertionError": "of `steelyard.testing` and pytest: the difference is the message",
    "AttributeError": "Python's own protocol of a lazy module",
    "Exit": "the exit status of a command, which has said why",
    "JournalFull": "becomes HTTP 429 or 503, which exporters know",
    "LookupError": "said of an experiment of `explain` that cannot be made of this application",
    "KeyError": "Python's own protocol of a mapping",
    "MissingDependency": "names the package and the command that installs it, in its class",
    "OddReply": "caught by the sender, which asks again",
    "OperationalError": "caught by the retry of the same file",
    "QueueFailed": "caught by the worker; what is warned of it says what to do",
    "Refused": "caught by the broker's queue, which counts it",
    "ReplayFailed": "printed with the letter that it concerns",
    "ThreadHangs": "becomes a cause of a sink",
    "TimeoutError": "Python's own; becomes a cause",
    "Unanswerable": "becomes a Score with its cause",
    "Unreachable": "caught by the broker's queue, which tries again",
    "Unreadable": "becomes a dead letter with its cause",
    "ValueError": "of functions of figures: the values that are right stand in it or in the docstring",
}
"""Nobody meets these, or not as a message."""

RULE = (
    r"\bmust\b|\bneeds?\b|\b(?:is|are) needed\b|\btakes\b|\bwants\b|\bnot of the form\b"
    r"|\b(?:is|are) (?:not )?one of\b|; there (?:is|are)\b|; those are\b|; it has\b|\bbegin with\b"
    r"|instead_of\(|; `steelyard [^`]+` (?:shows|writes)\b"
)
VERBS = (
    "add|ask|calibrate|check|choose|close|copy|correct|create|delete|drop|edit|export|free|get|give|install|label|"
    "leave|lower|make|move|name|open|pass|put|raise|read|reinstall|remove|rename|run|say|see|send|set|shorten|"
    "split|start|stop|take|try|turn|unset|update|upgrade|use|wait|write"
)
TELLS = re.compile(
    rf"{RULE}|(?:^|[;:,(?]\s+(?:(?:to|for|or|and|then|first)\s[^;]{{0,40}}?\s)?|\b(?:or|and)\s+|\.\s+)"
    rf"(?:{VERBS})\b",
    re.IGNORECASE,
)
BY_ITSELF = re.compile(
    r"\bagain\b|\banew\b|\btrying on\b|\bonly counted\b|\bleft out\b|\bis not delivered\b|\bgoes on\b"
    r"|\bnext try\b",
    re.IGNORECASE,
)
ALLOWED = {
    "a part could not begin anew in a forked child": "a defect of ours, to be reported",
    "the thread %s has ended: %s": "a defect of ours, to be reported",
    "a turn could not be prepared for evaluation": "one turn; its error and place are in the message",
    "a turn could not be evaluated": "one turn; its error and place are in the message",
    "a turn was not diagnosed": "one turn, which has its scores",
    "a piece of a trace cannot be read": "one piece; its error is in the message",
    "a canary could not be asked": "one probe; others are asked",
    "a dead letter could not be stored": "the broker's error is in the message",
    "labels were not looked at": "the alarm is told without them",
    "the judge %r answers probes as before": "good news",
    "the judge %r has changed": "what to make of it is said: scores before and after are not comparable",
    "screen_floor is 0": "what was done is said",
    "the sink %r has written none of %d scores (%s); %s": "the last part says what to do, by the cause",
    "<self._me>: <wanted>": "what is wanted is held to the rule where `_must` is called",
    "<str(error)>": "hands on an error that is held to the rule where it is made",
    "no plan: ": "the judge's own words; its cause is mended as `steelyard doctor` says",
}
"""By how they begin: messages without a mend, and why."""


@dataclass(frozen=True)
class Message:
    """One message in the source."""

    kind: str
    where: str
    text: str


def _text(node: ast.AST | None, scope: ast.AST) -> str:
    """The words of an expression; of a name, those that were assigned to it in the same function or file."""
    match node:
        case ast.Constant(value=str(text)):
            return text
        case ast.JoinedStr(values=parts):
            return "".join(
                _text(part.value if isinstance(part, ast.FormattedValue) else part, scope) for part in parts
            )
        case ast.BinOp(left=left, right=right):
            return _text(left, scope) + _text(right, scope)
        case ast.IfExp(body=body, orelse=other):
            return f"{_text(body, scope)} {_text(other, scope)}"
        case ast.Name(id=name):
            given = [
                _text(one.value, ast.Module([], []))
                for one in ast.walk(scope)
                if isinstance(one, ast.Assign) and ast.unparse(one.targets[0]) == name
            ]
            return " ".join(given) or f"<{name}>"
    return f"<{ast.unparse(node)}>" if node is not None else ""


@pytest.fixture(scope="module")
def messages() -> list[Message]:
    return list(_messages())


def _messages() -> Iterator[Message]:
    for path in FILES:
        tree = ast.parse(path.read_text(encoding="utf-8"))
        for node in ast.walk(tree):
            if (found := _said(node)) is not None:
                kind, words = found
                where = f"{path.relative_to(ROOT)}:{getattr(node, 'lineno', 0)}"
                yield Message(kind, where, _text(words, tree))


def _said(node: ast.AST) -> tuple[str, ast.AST | None] | None:
    """The kind of a message and its words, of a node that makes one."""
    if isinstance(node, ast.Call):
        # Some are made in one function and raised in another.
        if (kind := _name(node)) in ERRORS:
            return kind, next(iter(node.args), None)
        # Given what has to be so, and then what to say if it is not.
        if kind == "_must" and len(node.args) > 1:
            return "ConfigurationError", node.args[1]
        words = _warned(node)
        return None if words is None else ("warning", words)
    if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call) and _name(node.exc) not in ERRORS:
        return _name(node.exc), next(iter(node.exc.args), None)
    return None


def _name(call: ast.Call) -> str:
    match call.func:
        case ast.Attribute(attr=name) | ast.Name(id=name):
            return name
    return ""


def _warned(call: ast.Call) -> ast.AST | None:
    """What a call logs or warns of, at the level of a warning or above."""
    if _name(call) in ("warning", "error") and "log" in ast.unparse(call.func).lower() and call.args:
        return call.args[0]
    # A `WarnOnce` is given a key first.
    if _name(call) == "_warn" and len(call.args) > 1:
        return call.args[1]
    return None


def test_the_messages_are_found(messages: list[Message]) -> None:
    assert sum(one.kind == "ConfigurationError" for one in messages) > 300
    assert sum(one.kind == "warning" for one in messages) > 60


def test_every_kind_of_error_is_known(messages: list[Message]) -> None:
    """A new one is held to the rule, or says why not."""
    # What begins with a small letter makes an error, and is found where it does.
    kinds = {one.kind for one in messages if one.kind[:1].isupper()}
    assert kinds - ERRORS - OF_DATA.keys() - BY_CAUSE - INTERNAL.keys() == set()


@pytest.mark.parametrize("kind", [*sorted(ERRORS), "warning"])
def test_every_message_says_what_to_do(kind: str, messages: list[Message]) -> None:
    dumb = [
        f"{one.where} {one.text}"
        for one in messages
        if one.kind == kind
        and not TELLS.search(one.text)
        and not (kind == "warning" and BY_ITSELF.search(one.text))
        and not one.text.startswith(tuple(ALLOWED))
    ]
    assert dumb == []


def test_the_doctor_knows_what_mends_each_cause() -> None:
    """Of a judge's server or a sink; causes of single questions stand on their Scores."""
    of_questions = {"instructed", "malformed_answer", "unsupported"}
    rooms = [path for path in FILES if {"judge", "sinks", "alarms"} & set(path.relative_to(ROOT).parts)]
    causes = {
        cause for path in rooms for cause in re.findall(r'cause="(\w+)"', path.read_text(encoding="utf-8"))
    }
    assert len(causes) > 12
    assert causes | {*_CAUSES.values(), "rejected", "unavailable"} == MENDS.keys() | of_questions


def test_no_exception_to_the_rule_is_left_over(messages: list[Message]) -> None:
    for start in ALLOWED:
        assert any(one.text.startswith(start) for one in messages), start
