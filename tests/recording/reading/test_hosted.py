"""What a model's provider searched by itself."""

from __future__ import annotations

from typing import Any

import pytest

from steelyard.recording.reading import searched_by_provider

FOUND = [
    {"file_id": "f1", "filename": "ferry.md", "score": 0.9, "text": "The ferry leaves at 7:15."},
    {"file_id": "f2", "filename": "fares.md", "score": 0.5, "text": "Dogs pay three euros."},
]
CALL: dict[str, Any] = {"type": "file_search_call", "id": "fs_1", "queries": ["ferry"], "results": FOUND}
SAID = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "At 7:15."}]}


@pytest.mark.parametrize(
    "reply", [{"output": [CALL, SAID]}, {"role": "assistant", "content": [CALL, SAID]}, [CALL, SAID]]
)
def test_results_of_a_hosted_search_are_a_tools(reply: Any) -> None:
    (message,) = searched_by_provider(reply)
    assert (message.role, message.tool, message.result) == ("tool", "file_search_call", FOUND)
    assert message.text == "The ferry leaves at 7:15.\n\nDogs pay three euros."


@pytest.mark.parametrize(
    "reply",
    [
        {
            "output": [
                {"type": "web_search_call", "action": {"sources": [{"url": "https://a.example"}]}},
                SAID,
            ]
        },
        {"output": [{**CALL, "results": None}, SAID]},
        {"content": "file_search_call"},
        "At 7:15.",
        None,
    ],
)
def test_a_reply_without_texts_of_a_search_has_none(reply: Any) -> None:
    assert searched_by_provider(reply) == ()
