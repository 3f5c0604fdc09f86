"""Splitting a block into passages."""

from __future__ import annotations

import json
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steelyard.recording.provenance import (
    finds_nothing,
    guessed_passages,
    guessed_question,
    has_empty_place,
    numbered_parts,
    passages_of,
    split_chat_template,
)
from steelyard.recording.provenance._sections import sections
from steelyard.recording.reading import strings_in

ROME, OSLO = "Rome has seven hills.", "Oslo lies on a fjord."
BOTH = [ROME, OSLO]

BLOCKS = {
    "list of texts": json.dumps(BOTH),
    "mappings with text": json.dumps([{"id": 1, "text": ROME}, {"id": 2, "text": OSLO}]),
    "mappings with body": json.dumps([{"body": ROME}, {"body": OSLO}]),
    "blocks": json.dumps({"blocks": [{"id": "a", "content": ROME}, {"id": "b", "content": OSLO}]}),
    "results": json.dumps({"query": "q", "results": [{"url": "u", "snippet": t} for t in BOTH]}),
    "documents of a vector store": json.dumps({"ids": [["a", "b"]], "documents": [BOTH]}),
    "matches with metadata": json.dumps({"matches": [{"score": 0.5, "metadata": {"text": t}} for t in BOTH]}),
    "hits of a search engine": json.dumps({"hits": {"hits": [{"_source": {"text": t}} for t in BOTH]}}),
    "a tool's text block with JSON": json.dumps([{"type": "text", "text": json.dumps(BOTH)}]),
    "JSON in JSON": json.dumps(json.dumps({"documents": [{"page_content": t} for t in BOTH]})),
    "serialised documents": json.dumps(
        [{"lc": 1, "type": "constructor", "kwargs": {"page_content": t}} for t in BOTH]
    ),
    "repr of documents": f"[Document(metadata={{'s': 'a'}}, page_content={ROME!r}), "
    f"Document(id='d2', metadata={{}}, page_content={OSLO!r})]",
    "repr of pairs": f"[(Document(page_content={ROME!r}), 0.31), (Document(page_content={OSLO!r}), 0.2)]",
    "repr of nodes": "["
    + ", ".join(
        "NodeWithScore(node=TextNode(id_='n', embedding=None, metadata={}, relationships="
        "{<NodeRelationship.SOURCE: '1'>: RelatedNodeInfo(node_id='x', metadata={})}, "
        f"text={text!r}, start_char_idx=0), score=0.9)"
        for text in BOTH
    )
    + "]",
    "repr of mappings": repr([{"text": t, "score": None} for t in BOTH]),
    "XML": f'<documents><document index="1"><source>a.md</source><document_content>{ROME}</document_content>'
    f'</document><document index="2"><document_content>{OSLO}</document_content></document></documents>',
}


WHOLE = {
    "wrapped paragraphs": f"<context>\n{ROME}\n\n{OSLO}\n</context>",
    "ruled headings": f"===== Document 0 =====\n{ROME}\n\n===== Document 1 =====\n{OSLO}",
    "sources": f"Source 1:\n{ROME}\n\nSource 2:\n{OSLO}",
    "brackets": f"[1] {ROME}\n[2] {OSLO}",
    "labelled on one line": f"Document 1: {ROME}\nDocument 2: {OSLO}",
    "Markdown headings": f"### Document 1\n{ROME}\n\n### Document 2\n{OSLO}",
    "labels with names": f"[Source 1: a.md]\n{ROME}\n\n[Source 2: b.md]\n{OSLO}",
    "labels with scores": f"Result 1 (score 0.9):\n{ROME}\n\nResult 2 (score 0.8):\n{OSLO}",
    "labels and fields": f"Document 1:\nTitle: a\nContent: {ROME}\n\nDocument 2:\nTitle: b\nContent: {OSLO}",
    "a numbered list": f"Found 2 results:\n1. {ROME}\n2. {OSLO}",
    "rules": f"{ROME}\n---\n{OSLO}",
    "a header": f"Retrieved documents:\n\n{ROME}\n\n{OSLO}",
    "a header on the line above": f"Retrieved documents:\n{ROME}\n\n{OSLO}",
    "carriage returns": f"{ROME}\r\n\r\n{OSLO}",
}
"""Texts that nothing of their own divides: each of these ways to join passages stands within passages too."""


@pytest.mark.parametrize("name", WHOLE)
def test_a_text_without_structure_stays_whole(name: str) -> None:
    (passage,) = passages_of(WHOLE[name])
    assert ROME in passage.text
    assert OSLO in passage.text


@pytest.mark.parametrize("name", BLOCKS)
def test_every_usual_block_gives_its_passages(name: str) -> None:
    assert [context.text for context in passages_of(BLOCKS[name])] == BOTH


def test_ids_and_scores_are_kept() -> None:
    hits = [{"id": 7, "text": ROME, "score": 0.5}, {"metadata": {"doc_id": "b", "score": 0.25}, "text": OSLO}]
    for block in (hits, json.dumps(hits), repr(hits)):
        found = passages_of(block)
        assert [(one.id, one.score, one.rank) for one in found] == [("7", 0.5, 0), ("b", 0.25, 1)]


NOTHING = (
    "No results found.",
    "Retrieved 0 results with score >= 0.4:\nNo results found above that score.",
    '{"results": "No relevant information was found in the knowledge base."}',
    "['There are no matching documents for this question.']",
    "Sorry, nothing matched your search.",
    "No good Wikipedia Search Result was found",
    "No search results found for 'lens'. Suggestions: Try a broader query.",
    "I couldn't find any relevant documents about the lens.",
    "Document 12 not found.",
    "Es wurden keine Treffer gefunden",
    "Aucun r\u00e9sultat trouv\u00e9",
    "No se encontraron resultados.",
    "\u62b1\u6b49\uff0c\u6ca1\u6709\u627e\u5230\u76f8\u5173\u4fe1\u606f",
    "\u95a2\u9023\u3059\u308b\u6587\u66f8\u306f\u898b\u3064\u304b\u308a\u307e\u305b\u3093\u3067\u3057\u305f\u3002",
    "\uac80\uc0c9 \uacb0\uacfc\uac00 \uc5c6\uc2b5\ub2c8\ub2e4.",
)
SAYING_NO = (
    "No data is stored on the device by default.",
    "No documents for the crossing are needed.",
    "No dogs are allowed on the ferry on Sundays.",
    "No matches are sold on board; bring your own lighter.",
    "Nothing is sold on board.",
    "No results for May, but in June twelve boats left.",
    "No results found for 'ferry' in the index. The ferry leaves at 7:15.",
    "We could not find evidence of an effect of salt.",
    "\u672a\u6210\u5e74\u4eba\u4e0d\u5f97\u8d2d\u4e70\u9152\u7c7b\u3002",
    f"No results were found in 1811. {ROME * 6}",
)


@pytest.mark.parametrize("said", NOTHING)
def test_a_statement_that_nothing_was_found_is_told(said: str) -> None:
    assert all(finds_nothing(one.text) for one in passages_of(said))


@pytest.mark.parametrize("said", SAYING_NO)
def test_a_passage_that_begins_with_no_is_one(said: str) -> None:
    assert not finds_nothing(said)


def test_a_passage_of_several_paragraphs_in_a_list_is_one_passage() -> None:
    assert len(passages_of(json.dumps([f"{ROME}\n\n{OSLO}", "Bern has bears."]))) == 2


def test_a_printed_row_in_a_list_of_texts_stays_whole() -> None:
    listed = ["[('Skarholm', 412)]", "Boats moor at the eastern breakwater this week."]
    assert [one.text for one in passages_of(listed)] == listed


def test_of_a_node_only_the_text_is_read() -> None:
    node = {
        "text": "Rome.",
        "text_template": "{metadata_str}\n\n{content}",
        "metadata_template": "{key}: {value}",
    }
    assert [text for _, text in strings_in({"nodes": [node]})] == ["Rome."]


def test_documents_between_tags_are_passages_also_where_a_list_holds_them() -> None:
    tagged = f'<Document href="a"/>\n{ROME}\n</Document>\n\n---\n\n<Document href="b"/>\n{OSLO}\n</Document>'
    assert [one.text for one in passages_of([tagged, "Bern has bears."])] == [ROME, OSLO, "Bern has bears."]
    page = "<p>Bern has bears.</p>\n\n<p>They climb.</p>"
    assert [one.text for one in passages_of([page, ROME])] == [page, ROME]


@pytest.mark.parametrize(
    "text",
    [
        ROME,
        "Article 1 says so. It goes on.",
        '{"temperature": 3, "unit": "C"}',
        "[see the appendix",
        "Document(page_content='never ends",
    ],
)
def test_what_cannot_be_split_is_one_passage(text: str) -> None:
    assert [one.text for one in passages_of(text)] == [text]


@pytest.mark.parametrize("block", ["", " \n ", "[]", "{}", None, 3, b"bytes", [None, 3], {"a": object()}])
def test_what_holds_no_passage_gives_none_of_its_own(block: object) -> None:
    assert [one.text for one in passages_of(block)] in ([], [block])


@given(st.text(alphabet="[](){}<>'\"\\ \n:=,aD1-d/", max_size=300))
def test_any_text_is_split_without_raising(text: str) -> None:
    assert all(one.text.strip() for one in passages_of(text))


@given(st.lists(st.text(min_size=1).filter(str.strip), min_size=2, max_size=5))
def test_what_python_shows_is_read_back(texts: list[str]) -> None:
    shown = "[" + ", ".join(f"Document(metadata={{}}, page_content={text!r})" for text in texts) + "]"
    read = [one.text for one in passages_of(shown)]
    expected = [one.text for text in texts for one in passages_of([{"text": text}, {"text": "x"}])[:1]]
    assert read == expected


HOSTILE = {
    "blank lines": "a.\n" + "\n" * 1000 + "b.",
    "lines of one space": "a\n" + " \n" * 1000 + "b",
    "open tags": "<context>" * 1000,
    "open documents": "</doc>" + "<doc>x" * 1000,
    "open lists": "[" * 1000,
    "open calls": "Document(" * 1000,
    "open strings": "Document(page_content='" * 1000,
    "escapes": "['" + "\\'" * 1000,
    "stars": "*" * 1000,
    "dashes": "-" * 1000 + "x",
    "labels": "[1] \n" * 1000,
    "fields": "a: b\n" * 1000,
    "spaces": " " * 1000 + "document 1",
    "open attributes": "<document " * 1000 + "</",
    "digits": "[" + "9" * 1000,
    "nested JSON": '{"a":' * 1000,
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_blocks_take_time_in_line_with_their_length(name: str) -> None:
    def seconds(times: int) -> float:
        block = HOSTILE[name] * times
        taken = []
        for _ in range(3):
            start = time.thread_time()
            passages_of(block)
            taken.append(time.thread_time() - start)
        return min(taken)

    one, two, four = seconds(5), seconds(10), seconds(20)
    assert two < 4 * one + 0.02
    assert four < 3 * two + 0.02
    assert four < 1


PAGES = "The ferry leaves at 7:15.\nIt takes dogs."


@pytest.mark.parametrize(
    "prompt",
    [
        "<|system|>\nUse the following context to help:\n\n{}\n</s>\n<|user|>\nWhen does it leave?\n</s>\n"
        "<|assistant|>\n",
        "<s>[INST] <<SYS>>\nBe brief.\n<</SYS>>\n\nContext: {} [/INST]",
        "<|im_start|>system\nAnswer out of these documents:\n{}<|im_end|>\n"
        "<|im_start|>user\nWhen?<|im_end|>\n",
        "<|begin_of_text|><|start_header_id|>user<|end_header_id|>\n\nContext:\n{}<|eot_id|>"
        "<|start_header_id|>assistant<|end_header_id|>",
        "<start_of_turn>user\nContext:\n{}<end_of_turn>\n<start_of_turn>model\n",
    ],
)
def test_the_templates_of_local_models_end_the_context(prompt: str) -> None:
    assert guessed_passages(prompt.format(PAGES), "") == [PAGES]
    assert guessed_passages(prompt.format(""), "") == []


@pytest.mark.parametrize(
    "prompt",
    [
        "Du hilfst.\n\nHintergrundwissen:\n{}\n\nKundenfrage: {}\n\nAntwort:",
        "\u3010\u5e97\u306e\u30eb\u30fc\u30eb\u3011\n{}\n\n\u3010\u8cea\u554f\u3011\n{}\n\nReply.",
        "<policy_pages>\n{}\n</policy_pages>\n<visitor>\n{}\n</visitor>\nReply to the visitor.",
        "{}\n\n{}\n\nUse the provided context only.",
        "Context:\n{}\n\nQuestion: {}\n\nBe brief.",
        "Be brief.\nSTART CONTEXT BLOCK\n{}\nEND OF CONTEXT BLOCK\nKeep to that block.\n\n{}",
        "--- CONTEXT BLOCK START ---\n{}\n--- CONTEXT BLOCK END ---\n{}",
    ],
)
def test_a_prompt_that_marks_its_question_marks_its_passages_alike(prompt: str) -> None:
    asked = "When does the first ferry leave?"
    assert guessed_question(prompt.format(PAGES, asked)) == asked
    assert guessed_passages(prompt.format(PAGES, asked), asked) == [PAGES]
    assert guessed_passages(prompt.format("", asked), asked) == []


def test_sections_of_one_label_are_passages_alike_and_answered_questions_are_history() -> None:
    asked, tickets = (
        "When does the first ferry leave?",
        "Tickets are sold on board, for cash only, by the crew.",
    )
    rows = f"Entry 1: a.pdf\nContent:\n{PAGES}\n\nEntry 2: b.pdf\nContent:\n{tickets}"
    assert guessed_passages(f"{rows}\n\nQuestion: {asked}", asked) == [PAGES, tickets]
    prompt = (
        f"Log:\nUser: Is it open?\nAssistant: It is open.\n\nRules:\n- Be kind\n\nNow: {asked}\n\nAnswer:"
    )
    assert guessed_question(prompt) == asked


def test_headings_in_capitals_are_no_begin_and_end() -> None:
    for first, second in (("USER QUESTION", "USER CONTEXT"), ("USER DATA BLOCK", "USER DATA BLOCK")):
        prompt = f"{first}\nWhen?\n{second}\n{PAGES}"
        assert not any(one.form == "tag" for one in sections(prompt))


def test_headings_of_passages_stay_theirs_after_a_rule() -> None:
    tickets = "Tickets are sold on board."
    prompt = f"Context:\n[Part A @ 01:20]\n{PAGES}\n\n---\n\n[Part B @ 02:10]\n{tickets}\n\nQuestion: When?"
    assert guessed_passages(prompt, "When?") == [f"[Part A @ 01:20]\n{PAGES}", f"[Part B @ 02:10]\n{tickets}"]


def test_what_tells_how_to_use_passages_is_none() -> None:
    asked = "When does the first ferry leave?"
    rules = "Rules:\n- Use the pages to guide your reply\n- Keep a calm and clear tone at all times"
    prompt = f"Incoming ticket:\n{asked}\n\nPages:\n{PAGES}\n\n{rules}"
    assert guessed_passages(prompt, asked) == [PAGES]
    nested = (
        "### Retrieved documents\nUse this to:\n- Answer questions of fact\n\nDocuments:\n{}\n\n### User\n{}"
    )
    assert guessed_passages(nested.format(PAGES, asked), asked) == [PAGES]
    assert has_empty_place(nested.format("No relevant documents found.", asked), asked)


def test_a_label_is_not_a_clock_and_a_chat_has_no_place_for_passages() -> None:
    assert [one.label for one in sections("The ferry leaves at 7:15.")] == [""]
    chat = "Current conversation:\n\nHuman: When does it leave?\nAI:"
    assert not has_empty_place(chat, "When does it leave?")
    assert guessed_passages(chat, "When does it leave?") == []


@pytest.mark.parametrize("place", ["Context:\n{}\n", "<context>{}</context>", "**Sources**\n{}\n"])
@pytest.mark.parametrize("shown", ["", "[]"])
@pytest.mark.parametrize(
    "order", ["Answer briefly.\n{place}\nQuestion: {asked}", "Question: {asked}\n{place}Answer:"]
)
def test_an_empty_place_for_passages_is_told(place: str, shown: str, order: str) -> None:
    asked = "When does the first ferry leave?"
    prompt = order.replace("{place}", place).replace("{asked}", asked)
    assert has_empty_place(prompt.format(shown), asked)
    assert not has_empty_place(prompt.format(PAGES), asked)


@given(st.text(alphabet="<|>/s[INST]user_ \n", max_size=400))
def test_speeches_lose_only_marks(text: str) -> None:
    assert "".join(split_chat_template(text)) == "" or all(part in text for part in split_chat_template(text))


@pytest.mark.parametrize("count", [2, 3])
def test_elements_side_by_side_are_parts_of_their_own(count: int) -> None:
    parts = [f"{PAGES} Part {at}." for at in range(count)]
    block = "\n".join(f'<document id="{at}">\n{part}\n</document>' for at, part in enumerate(parts))
    assert guessed_passages(f"Context:\n{block}\n\nQuestion: When?", "When?") == parts
    nested = f"<document>\n<document>{parts[0]}</document>\n</document>\n\nQuestion: When?"
    assert len(guessed_passages(nested, "When?")) == 1


@pytest.mark.parametrize(
    "mark",
    [
        "[{}] {}",
        "[{}] (source: law.pdf)\n{}",
        "[{}] Tides, a chapter\n{}",
        "Document {}: {}",
        "[Source {}: law.pdf, p. 3]\n{}",
        "### Document {}\n{}",
        "**Source {}**: {}",
        "--- Document {} (law.pdf) ---\n{}",
        "(Page {}) {}",
        "[{}] (score: 0.81) {}",
    ],
)
def test_parts_that_count_are_passages_without_what_is_above_them(mark: str) -> None:
    parts = ["Boats leave at nine.\nOn Sundays at ten.", "Dogs are free."]
    block = "\n\n".join(mark.format(at, part) for at, part in enumerate(parts, 1))
    assert numbered_parts(block) == parts
    assert numbered_parts(f"{block}\n\nUse these sources only.") == parts
    assert numbered_parts(mark.format(1, parts[0])) == parts[:1]


@pytest.mark.parametrize("head", ["[{}]\n", "[{}] (source: law.pdf)\n", "[{}]: ", "({}) "])
def test_parts_that_begin_in_brackets_are_passages_without_what_stands_there(head: str) -> None:
    parts = ["Boats leave at nine.\nOn Sundays at ten.", "Dogs are free."]
    assert numbered_parts("\n\n".join(head.format(part[:3]) + part for part in parts)) == parts


@pytest.mark.parametrize(
    "block",
    [
        "[Rome](https://a.example) has hills.\n\n[Oslo](https://b.example) has a fjord.",
        "1. Boil it.\n2. Salt it.",
        "- [1] A title of a document",
        "Section 1 of the act holds.",
        "Page 4: Rome.",
        "",
    ],
)
def test_other_numbers_divide_nothing(block: str) -> None:
    assert numbered_parts(block) == [block]


def test_what_a_template_shows_how_it_is_done_with_is_no_passage() -> None:
    shown = f"Context: {OSLO}\nQuestion: Where does Oslo lie?\nAnswer: On a fjord."
    prompt = f"Answer by the context.\n\n{shown}\n\nContext: {ROME}\nQuestion: How many hills?\nAnswer:"
    assert guessed_passages(prompt, "How many hills?") == [ROME]


@pytest.mark.parametrize(("told", "empty"), [("\n", True), (f"\n{ROME}\n", False)])
def test_tags_beside_those_of_the_question_are_the_place_for_passages(told: str, empty: bool) -> None:
    prompt = f"Be brief.\n<findings>{told}</findings>\n<ask>How many hills?</ask>"
    assert has_empty_place(prompt, "How many hills?") == empty


def test_what_a_rule_parts_from_the_question_below_its_heading_is_no_passage() -> None:
    told = "Say so in a kind way, and in no more than four sentences for a reader in a hurry."
    prompt = f"## So far:\nUser: Hello\n\n## Student's message:\nTell me more\n\n---\n{told}"
    assert not guessed_passages(prompt, "Tell me more")
