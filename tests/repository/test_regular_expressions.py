"""No regular expression of ours takes time with the square of a text: it keeps the interpreter lock.

The expressions are found in the code, each with the method that it is used with there, and tried on texts
made of its own pieces: what it looks for, repeated, in pairs, and with an end that fits nothing.
"""

from __future__ import annotations

import ast
import importlib
import re
import sys
import time
import types
from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
SOURCES = [ROOT / "src", *sorted(ROOT.glob("integrations/*/src"))]
METHODS = ("search", "match", "fullmatch", "finditer", "findall", "split", "sub", "subn")
SHORT = 256
LONG = 8_000
SUSPICIOUS = 0.0001
"""Seconds that a short text takes where the time may grow with the square; most take a tenth of it."""
UNNOTICED = 0.02
"""Seconds that a long text may take, whatever the growth."""
END = "\x00"
SCRIPTS = (
    *(
        "三",
        "〇万",
        "5",
        "٥",
        "५",
        "Ω",
        "ж",
        "ש",
        "ع",
        "क्",
        "ไ",
        "가",
        "か",
        "é",
        "e\u0301",
        "\u0301",
        "\u200d",
        "\u202e",
    ),
    *(
        "\U0001f600",
        "👩\u200d🚀",
        "🇩🇪",
        "A. ",
        "b.",
        "- x\n",
        "• ",
        "1. ",
        "1) ",
        "((",
        "[",
        "{",
        "<",
        "「",
        '"',
        "'",
        "’",
    ),
    *(
        "。",
        "、",
        "\u00a0",
        "\t",
        "|",
        "\n|",
        "#",
        "`",
        "\\",
        "/",
        ":",
        "=",
        "_",
        "0",
        "1,",
        "1 000 ",
        "true",
        "a@",
    ),
)
"""What a text of any language may repeat: numerals, marks, emoji, one-letter sentences, bullets, brackets."""


def module_of(path: Path) -> Any:
    [source] = [source for source in SOURCES if path.is_relative_to(source)]
    return importlib.import_module(".".join(path.relative_to(source).with_suffix("").parts))


def calls_of(path: Path) -> list[ast.Call]:
    """The calls of `re` in a file."""
    tree = ast.parse(path.read_text())
    return [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and isinstance(node.func.value, ast.Name)
        and node.func.value.id == "re"
        and node.func.attr in (*METHODS, "compile")
    ]


FILES = [
    path
    for source in SOURCES
    for path in sorted(source.rglob("*.py"))
    if path.name != "__main__.py"
    and "re." in (text := path.read_text())
    and "import re" in text
    and calls_of(path)
]


class Anything(dict[str, Any]):
    """Stands for what an expression made at run time takes from its function."""

    def __missing__(self, name: str) -> Any:
        if name in __builtins__:  # type: ignore[operator]
            raise KeyError(name)
        return Word("two words")


class Word(str):
    """A text that can also be taken for a list of words."""

    __slots__ = ()

    def __iter__(self) -> Iterator[str]:
        return iter(self.split())


def pattern_of(call: ast.Call, module: Any) -> re.Pattern[str]:
    """The expression of a call, with any words for what is known only at run time."""
    arguments = ast.Call(ast.Name("compile", ast.Load()), call.args[:1], [])
    if call.func.attr == "compile":  # type: ignore[attr-defined]
        arguments = ast.Call(arguments.func, call.args, call.keywords)
    expression = ast.fix_missing_locations(ast.Expression(arguments))
    names = Anything(vars(module) | {"compile": re.compile})
    return eval(compile(expression, "expression", "eval"), {}, names)  # type: ignore[no-any-return]


def methods_of(call: ast.Call, path: Path) -> set[str]:
    """How an expression is used: as its call says, or as what is called with its name."""
    assert isinstance(call.func, ast.Attribute)
    if call.func.attr != "compile":
        return {call.func.attr}
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Assign | ast.AnnAssign) and ast.dump(node.value or node) == ast.dump(call):
            [target] = node.targets if isinstance(node, ast.Assign) else [node.target]
            used = re.findall(rf"\b{ast.unparse(target)}\.({'|'.join(METHODS)})\b", path.read_text())
            return set(used) or {"search"}
    return {"search", "finditer"}  # kept in a table, say: used in whatever way


def used(pattern: re.Pattern[str], method: str) -> Callable[[str], object]:
    """A function that uses an expression up."""
    if method in ("sub", "subn"):
        return lambda text: pattern.sub("", text)
    if method == "finditer":
        return lambda text: sum(1 for _ in pattern.finditer(text))
    return getattr(pattern, method)  # type: ignore[no-any-return]


def pieces(pattern: re.Pattern[str]) -> list[str]:
    """What texts are made of: some letters, digits and spaces, and what the expression names."""
    named = re.findall(r"[A-Za-z]{2,}|[^\w\s]", pattern.pattern)
    return list(dict.fromkeys([" ", "\n", "a", "A", "1", "\u4e2d", *named]))[:16]


def texts(pattern: re.Pattern[str]) -> Iterator[tuple[str, str]]:
    """A beginning and what comes again and again after it."""
    found = pieces(pattern)
    for one, two in product(["", *found], found):
        yield "", one + two
    for begin, one in product(found[:10], found):
        yield begin, one
    for begin, one in product(["", *found[6:9]], SCRIPTS):
        yield begin, one


def seconds(use: Callable[[str], object], begin: str, again: str, length: int) -> float:
    text = begin + again * (length // len(again)) + END
    started = time.thread_time()
    use(text)
    return time.thread_time() - started


def grows_too_fast(use: Callable[[str], object], begin: str, again: str) -> bool:
    """Whether four times the text takes much more than four times as long, every time it is tried."""
    first = seconds(use, begin, again, SHORT)
    if first < SUSPICIOUS or seconds(use, begin, again, LONG // 8) < max(UNNOTICED / 64, 8 * first):
        return False
    for _ in range(3):
        short, long = (min(seconds(use, begin, again, n) for _ in range(2)) for n in (LONG // 4, LONG))
        if long < UNNOTICED or long < 8 * short:
            return False
    return True


@pytest.mark.timeout(900)  # of one file forty seconds of a core, which a busy machine takes long to give
@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_no_regular_expression_takes_time_with_the_square_of_a_text(path: Path) -> None:
    module = module_of(path)
    for call in calls_of(path):
        pattern = pattern_of(call, module)
        for method in methods_of(call, path):
            use = used(pattern, method)
            slow = next((made for made in texts(pattern) if grows_too_fast(use, *made)), None)
            assert slow is None, f"line {call.lineno}: {method} of {pattern.pattern!r} on {slow}"


def test_an_expression_that_takes_time_with_the_square_is_found() -> None:
    pattern = re.compile(r"\s+$")
    assert grows_too_fast(pattern.search, "", " ")
    assert not grows_too_fast(pattern.match, "", " ")


def patterns_of(module: types.ModuleType) -> Iterator[re.Pattern[str]]:
    """The regular expressions that a module has made of its own, also those in its tables."""
    waiting = [value for name, value in vars(module).items() if not name.startswith("__")]
    for _ in range(3):
        inside: list[Any] = []
        for value in waiting:
            if isinstance(value, re.Pattern):
                yield value
            elif isinstance(value, dict):
                inside += [*value, *value.values()]
            elif isinstance(value, (list, tuple, set, frozenset)):
                inside += value
        waiting = inside


def test_every_regular_expression_is_found_in_the_code() -> None:
    written = {pattern_of(call, module_of(path)).pattern for path in FILES for call in calls_of(path)}
    made = {
        pattern.pattern
        for name, module in list(sys.modules.items())
        if name.startswith("steelyard")
        for pattern in patterns_of(module)
    }
    assert len(made) > 100 and not made - written
