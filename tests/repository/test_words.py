"""Words that decide what a text is stand in docs/reference/recording.md with what keeps them; few."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
ROOMS = (
    "src/steelyard/recording",
    *(f"integrations/{name}/src" for name in ("langchain", "llamaindex", "opentelemetry")),
)
MOST = 30

FORMS = {
    *(
        "_trace:_TRACE_ID",
        "_trace:_SPAN_ID",
        "_templates:_END",
        "_templates:_LABEL",
        "_words:_LEAD",
        "_evidence:_PIECE",
    ),
    "_provenance:_SCORES",
    *("_beside:_ENDS", "_answers:_LABEL_ENDS"),
    *("_sections:_SPEAKER", "_sections:_BUFFER", "_sections:_TAG", "_sections:_HEADING", "_find:_PRINTED"),
    *("_sections:_NUMBER", "_guesses:_GAP", "_sections:_BELOW", "_sections:_RULE", "_guesses:_BRACKETED"),
    *("_words:_ESCAPE", "_words:_ENTITY", "_words:_TAG", "_words:_SURROGATE", "_words:_BEYOND_ASCII"),
    *("_words:_IS_SPACELESS", "_words:_OTHERS", "_words:_RUNS", "_words:_FOREIGN_BETWEEN", "_words:_BETWEEN"),
    *("_literals:_STRING", "_literals:_ESCAPED", "_literals:_NAME", "_literals:_NUMBER"),
    *("_literals:_OPAQUE", "_literals:_SPACE", "_passages:_TAG", "_passages:_ENTITY"),
    *("_passages:_ATTRIBUTE_ID", "_passages:_LOOKS_SHOWN", "_values:_HOLDS_SEVERAL"),
    *("_payload:_ENCODED", "_payload:_SHOWN", "_payload:_OBJECT", "_payload:_UNSHOWN", "_payload:_STOP"),
    *("_joining:_BETWEEN", "_shapes:_BETWEEN", "_documents:CAMEL"),
}
"""Patterns of forms: formats, escapes, ids."""

NAMES = {
    *("_passages:_WRAPPERS", "_messages:_TOOLS", "_generic:_FOREIGN"),
    *(
        "_build:_CANCELLED",
        "_build:_INTERRUPTED",
        "_content:CONTENT",
        "_frameworks:_CREW_INPUT",
        "_frameworks:_PLACE",
    ),
    *("_table:_HAYSTACK", "_table:_LLAMAINDEX", "__init__:_RETRIEVAL", "__init__:_OBJECT"),
    "_joining:_CONVERSATION",
}
"""Names that frameworks and conventions give to things."""


def test_words_that_decide_are_listed_with_what_keeps_them() -> None:
    decide = set(_found()) - FORMS - NAMES
    assert {one.partition(":")[2] for one in decide} == _listed()
    assert len(decide) <= MOST
    assert set(_found()) >= FORMS | NAMES, "a pattern is gone, and its name is still here"


def _listed() -> set[str]:
    page = (ROOT / "docs" / "reference" / "recording.md").read_text(encoding="utf-8")
    rows = page.partition("## Words that decide")[2].partition("\n## ")[0].splitlines()
    return {
        name
        for row in rows
        if row.startswith("| `")
        for name in re.findall(r"`(_[A-Z_]+)`", row.split("|")[1])
    }


def _found() -> Iterator[str]:
    """Every pattern and every list of words of a module, as `module:NAME`."""
    for room in ROOMS:
        for path in sorted((ROOT / room).rglob("*.py")):
            for statement in ast.parse(path.read_text(encoding="utf-8")).body:
                if isinstance(statement, (ast.Assign, ast.AnnAssign)) and _is_of_words(statement):
                    target = (
                        statement.target if isinstance(statement, ast.AnnAssign) else statement.targets[0]
                    )
                    yield f"{path.stem}:{ast.unparse(target)}"


def _is_of_words(statement: ast.Assign | ast.AnnAssign) -> bool:
    """Whether a pattern is compiled in it, or a text of words is split."""
    text = ast.unparse(statement)
    return "re.compile(" in text or "_WORDS.split()" in text
