"""Values as frameworks pass them."""

from __future__ import annotations

from langchain_core.prompts import PromptTemplate

from steelyard.recording.reading import strings_in


def test_what_a_template_is_bound_to_is_not_read() -> None:
    template = PromptTemplate.from_template("{role}\n{context}").partial(role="Answer for the front desk.")
    given = {"prompt": template, "context": "Boats moor at the breakwater."}
    assert [text for _, text in strings_in(given)] == ["Boats moor at the breakwater."]
