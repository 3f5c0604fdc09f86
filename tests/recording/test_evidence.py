"""What counts as evidence, by steps alone: the rules that no framework has any part in."""

from __future__ import annotations

import json
from typing import Any

import pytest

from steelyard.record import Context
from steelyard.recording.building import Step, Steps, asked_of, decide, reaches, sources_of
from steelyard.recording.provenance import ModelCall
from steelyard.recording.reading import Message

QUESTION = "When is the museum open on Sundays?"
HOURS = "On Sundays the museum opens at ten and closes at five in the afternoon."
TICKETS = "Tickets are sold at the northern gate until half an hour before closing time."


def evidence(*steps: Step, answer: str = "From ten to five.", given: Any = None) -> list[str]:
    """The texts that an answer is judged by."""
    turn = Steps(given=given or {"question": QUESTION}, steps=steps, answer=answer)
    return [one.text for one in decide(turn, sources_of(turn), answer=answer, question=QUESTION).contexts]


def call(prompt: str, reply: str, *, at: float, parent: Step | None = None) -> Step:
    """A model that was sent one prompt."""
    made = ModelCall(prompts=(prompt,), reply=reply, started=at)
    return Step(kind="model", call=made, parent=parent, at=at, ended=at + 0.5)


def test_a_tool_that_asks_a_model_for_a_query_still_found_what_it_returned() -> None:
    rows = f"day: Sunday; note: {HOURS}"
    tool = Step(kind="tool", name="ask_database", given={"q": QUESTION}, returned=rows, at=1)
    found = evidence(
        tool,
        call("Write SQL for: Sundays", "SELECT note FROM hours WHERE day = 'Sunday'", at=2, parent=tool),
        call(f"{rows}\n{QUESTION}", "From ten to five.", at=3),
    )
    assert found == [rows]


def test_what_a_model_within_a_tool_replied_is_not_evidence() -> None:
    said = "I would say that it opens at ten on Sundays, and closes at five."
    for returned in (said, {"answer": said}, f"Answer: {said}"):
        tool = Step(kind="tool", name="expert", given={"q": QUESTION}, returned=returned, at=1)
        inner = call(f"Answer from this:\n{HOURS}\n{QUESTION}", said, at=2, parent=tool)
        inner.parent = tool
        last = call(f"{said}\n{QUESTION}", "From ten to five.", at=3)
        assert said not in " ".join(evidence(tool, inner, last))


def test_what_a_model_said_is_its_own_in_a_list_that_was_told_after_code_appended_to_it() -> None:
    """Spans write what a step was given when it ends."""
    said = "Nothing of this tells when it opens on Sundays."
    steps = [
        Step(kind="chain", name="gather", given={"notes": [said]}, returned={}, at=1, ended=3),
        call(f"What do these tell?\n{QUESTION}", said, at=2),
        call(f"Notes: {said}\n{QUESTION}", "From ten to five.", at=4),
    ]
    assert evidence(*steps) == []


@pytest.mark.parametrize(
    ("given", "returned", "is_noted"),
    [
        ({"title": "Hours", "notes": HOURS}, "Notes recorded.", True),
        ({"notes": f"{HOURS} {TICKETS}"}, "Notes saved to state.", True),
        ({"notes": HOURS}, "[(5,)]", False),
        ({"q": QUESTION}, "Ten sharp", False),
        ({"day": "Sunday"}, "\u041d\u0438\u0447\u0435\u0433\u043e \u043d\u0435\u0442", True),
        ({"topic": "hours of the museum"}, "It is open on Sundays.", False),
        ({"topic": "opening hours"}, "Keep result for: opening hours", True),
    ],
    ids=[
        *("told-a-statement", "told-much", "returned-data", "asked-a-question", "told-a-word"),
        *("told-as-much", "said-back"),
    ],
)
def test_a_few_words_of_a_tool_are_noted(given: Any, returned: str, is_noted: bool) -> None:
    tool = Step(kind="tool", name="keep", given=given, returned=returned, at=1)
    last = call(f"{QUESTION}\n{returned}", "From ten to five.", at=2)
    turn = Steps(given={"question": QUESTION}, steps=(tool, last), answer="From ten to five.")
    found = decide(turn, sources_of(turn), answer=turn.answer, question=QUESTION)
    assert [one.text for one in found.contexts] == [returned]
    assert any("few words, or fewer than it was told" in note for note in found.notes) is is_noted


def test_an_extract_that_a_model_copied_takes_the_place_of_its_passage() -> None:
    extract = "the museum opens at ten and closes at five"
    look = Step(kind="retrieval", given=QUESTION, contexts=(Context(text=HOURS),), at=1)
    cut = call(f"Copy what answers {QUESTION}\n{HOURS}", extract, at=2)
    left = Step(kind="rerank", contexts=(Context(text=extract),), at=1, ended=3)
    found = evidence(look, cut, left, call(f"{extract}\n{QUESTION}", "From ten to five.", at=4))
    assert found == [extract]


def test_a_block_of_text_that_holds_a_status_stays_as_it_was_shown() -> None:
    status = json.dumps({"status": "ok", "note": HOURS, "took": 12, "unit": "ms", "source": "gate"})
    tool = Step(kind="tool", name="hours", returned=[{"type": "text", "text": status}], at=1)
    found = evidence(tool, call(f"{status}\n{QUESTION}", "From ten to five.", at=2))
    assert found == [status]


def test_a_block_of_text_that_holds_passages_is_divided() -> None:
    listed = json.dumps([{"text": HOURS}, {"text": TICKETS}])
    tool = Step(kind="tool", name="hours", returned=[{"type": "text", "text": listed}], at=1)
    found = evidence(tool, call(f"{HOURS}\n{TICKETS}\n{QUESTION}", "From ten to five.", at=2))
    assert found == [HOURS, TICKETS]


ROW = "[('Gone with the Wind in Colour', 402)]"
OWN = [f"Note(headline='Hours', words={HOURS!r})", f"Note(headline='Tickets', words={TICKETS!r})"]
OWN_ROWS = [
    json.dumps({"headline": "Hours", "words": HOURS}),
    json.dumps({"headline": "Tickets", "words": TICKETS}),
]
KEYED = [{"key": "INC-7", "summary": HOURS, "status": "open"}]
CELLS = [json.dumps(["t-1", HOURS, "open"]), json.dumps(["t-2", TICKETS, "shut"])]


@pytest.mark.parametrize(
    ("returned", "expected"),
    [
        (ROW, [ROW]),
        (f"[{', '.join(OWN)}]", OWN_ROWS),
        (json.dumps(KEYED), [json.dumps(one) for one in KEYED]),
        (str([("t-1", HOURS, "open"), ("t-2", TICKETS, "shut")]), CELLS),
        (f"[({HOURS!r}, 0.91), ({TICKETS!r}, 0.52)]", [HOURS, TICKETS]),
        (json.dumps({"query": QUESTION, "results": [{"title": "Hours", "content": HOURS}]}), [HOURS]),
    ],
    ids=[
        *("row-with-a-number", "records-of-its-own", "records-under-any-name", "printed-rows"),
        *("passages-with-scores", "one-hit-with-its-query"),
    ],
)
def test_a_tools_list_is_divided_into_passages_and_a_tables_row_is_not(
    returned: str, expected: list[str]
) -> None:
    tool = Step(kind="tool", name="keep", given={"q": QUESTION}, returned=returned, at=1)
    assert evidence(tool, call(f"{QUESTION}\n{returned}", "From ten to five.", at=2)) == expected


def test_of_a_row_that_code_wrote_into_a_prompt_the_text_that_stands_there_is_the_passage() -> None:
    tool = Step(kind="tool", name="find", given={"q": QUESTION}, returned=KEYED, at=1)
    assert evidence(tool, call(f"Found: {HOURS}\n{QUESTION}", "From ten to five.", at=2)) == [HOURS]


def test_a_question_in_json_is_no_passage_where_it_is_printed_with_other_spaces() -> None:
    claim = {"number": "C1", "loss": "A car backed into mine and drove off."}
    asked, compact = json.dumps(claim), json.dumps(claim, separators=(",", ":"))
    steps = [
        Step(kind="prompt", given={"claim_info": compact, "policy": HOURS}, at=1),
        call(f"Claim: {compact}\nPolicy: {HOURS}", "It is covered.", at=2),
    ]
    turn = Steps(given={"query": asked}, steps=steps, answer="It is covered.")
    origin = decide(turn, sources_of(turn), answer=turn.answer, question=asked)
    assert [one.text for one in origin.contexts] == [HOURS]


def test_of_a_list_of_mappings_the_column_that_says_most_is_the_passages() -> None:
    rows = [
        {"title": "Opening hours of the museum", "body": HOURS},
        {"title": "Where tickets can be bought", "body": TICKETS},
    ]
    prompt = "\n".join(f"{row['title']}: {row['body']}" for row in rows)
    found = evidence(
        Step(kind="chain", returned={"rows": rows}, at=1),
        call(f"{prompt}\n{QUESTION}", "From ten to five.", at=2),
    )
    assert found == [HOURS, TICKETS]


def test_a_text_that_joins_a_list_under_labels_is_divided_into_its_passages() -> None:
    rows = [
        {"title": "Hours", "where": "Visitors / Sundays", "body": HOURS},
        {"title": "Tickets", "where": "Visitors / Gates", "body": TICKETS},
    ]
    joined = "\n".join(f"### {row['title']} ({row['where']})\n{row['body']}" for row in rows)
    found = evidence(
        Step(kind="chain", returned={"rows": rows}, at=1),
        Step(kind="chain", returned={"context": joined}, at=2),
        call(f"{joined}\n{QUESTION}", "From ten to five.", at=3),
    )
    assert found == [HOURS, TICKETS]


def test_a_question_that_looks_like_a_whole_prompt_says_so() -> None:
    filled = f"Context:\n{HOURS}\n\n---\nQuestion: {QUESTION}"
    messages = [{"role": "user", "content": filled}]
    told = ("You are the museum's assistant.", filled)
    model = Step(kind="model", call=ModelCall(prompts=told, reply="From ten to five."), at=1, ended=2)
    turn = Steps(given={"messages": messages}, steps=(model,), answer="From ten to five.")
    asked = asked_of(turn, sources_of(turn))
    assert asked.question == filled, "what a user typed is the question as it stands"
    assert asked.notes == ("question_whole_prompt",)
    plain = Steps(given={"messages": [{"role": "user", "content": QUESTION}]}, steps=(model,), answer="x")
    assert asked_of(plain, sources_of(plain)).notes == ()


def test_a_prompt_with_places_that_nothing_was_put_into_says_so() -> None:
    own = f"Answer by the rows.\nQuestion: {QUESTION}\nSQLResult: \nAnswer:"
    turn = Steps(given=own, steps=(call(own, "There is nothing.", at=1),), answer="There is nothing.")
    assert asked_of(turn, sources_of(turn)).notes == ("question_whole_prompt",)


def test_a_question_within_words_of_the_application_says_so_although_it_was_looked_up() -> None:
    own = f"Today is Monday.\nUse this for words like 'tomorrow'.\n\nQuestion: {QUESTION}"
    search = Step(kind="retrieval", given=own, contexts=(Context(text=HOURS, id="1"),), at=1, ended=2)
    turn = Steps(given=own, steps=(search, call(f"{HOURS}\n\n{own}", "From ten to five.", at=3)), answer="x")
    asked = asked_of(turn, sources_of(turn))
    assert (asked.question, asked.notes) == (own, ("question_whole_prompt",))


def test_the_question_in_a_request_is_what_the_application_looked_up() -> None:
    request = json.dumps({"conversation": "c9", "text": QUESTION, "locale": "en"})
    search = Step(kind="retrieval", given=QUESTION, contexts=(Context(text=HOURS, id="1"),), at=1, ended=2)
    turn = Steps(given={"payload": request}, steps=(search, call(HOURS, "From ten to five.", at=3)))
    assert asked_of(turn, sources_of(turn)).question == QUESTION


INVOICE = "Invoice of the customer {} for May. The sum of {} is due on the first of June. {} has the keys."
MINE, OTHERS = (INVOICE.format(who, 300, who) for who in ("Anders", "Berger"))


def after(found: str, prompt: str) -> list[str]:
    """The texts that an answer is judged by, whose thread looked something up before its turn."""
    search = Step(kind="retrieval", given=QUESTION, contexts=(Context(text=found, id="1"),))
    steps = (call(f"{prompt}\n\n{QUESTION}", "On the first of June.", at=3),)
    turn = Steps(given={"question": QUESTION}, steps=steps, before=[[search]], answer="On the first of June.")
    made = decide(turn, sources_of(turn), answer=turn.answer, question=QUESTION)
    return [one.id for one in made.contexts if one.id]


@pytest.mark.parametrize(
    "shown",
    [MINE, MINE.upper(), MINE[:60], f"{MINE[:60]}...", MINE.replace(". ", ".\n"), MINE.partition(". ")[2]],
    ids=["whole", "capitals", "cut", "dots", "lines", "most"],
)
def test_what_the_thread_found_before_counts_as_far_as_it_is_shown(shown: str) -> None:
    assert after(MINE, f"Context:\n{shown}") == ["1"]


def test_what_the_thread_found_for_another_turn_is_not_taken_for_what_is_like_it() -> None:
    assert after(OTHERS, f"Context:\n{MINE}") == []
    assert after(OTHERS, f"Context:\n{MINE[:60]}") == []


@pytest.mark.parametrize(
    ("known", "shown", "is_noted"),
    [
        ((HOURS[:40] + "...",), HOURS, True),
        ((HOURS[:52],), HOURS, True),
        ((HOURS[:22],), HOURS, True),
        ((HOURS[:40] + "...",), HOURS[:40] + "...", False),
        ((HOURS,), f"{HOURS} {TICKETS}", False),
    ],
    ids=["a-mark-says-so", "within-a-word", "within-a-sentence", "the-model-saw-no-more", "whole"],
)
def test_a_passage_that_goes_on_in_the_prompt_is_noted(
    known: tuple[str, ...], shown: str, is_noted: bool
) -> None:
    assert any("goes on in the prompt" in note for note in notes_of(known, shown)) is is_noted


@pytest.mark.parametrize("told", [f"{HOURS[:40]}...", HOURS[:52]])
def test_a_passage_that_was_told_cut_has_the_rest_of_its_line_from_the_prompt(told: str) -> None:
    asked = call(f"Context:\n{HOURS}\n{TICKETS}\n\n{QUESTION}", "From ten to five.", at=2)
    search = Step(kind="retrieval", given=QUESTION, contexts=(Context(text=told),))
    turn = Steps(given=QUESTION, steps=(search, asked), answer="From ten to five.")
    made = decide(turn, sources_of(turn), answer=turn.answer, question=QUESTION)
    assert [one.text for one in made.contexts] == [HOURS]


@pytest.mark.parametrize(
    ("beside", "is_noted"),
    [
        (
            "HISTORY: It was built by Orlin in 1811, of stone out of a quarry that nobody has used since.",
            True,
        ),
        ("SOURCE: hours.md, page 3", False),
    ],
)
def test_much_between_known_passages_that_nobody_saw_come_is_noted(beside: str, is_noted: bool) -> None:
    notes = notes_of((HOURS, TICKETS), f"{HOURS}\n{beside}\n{TICKETS}\n{beside}")
    assert any("text beside the retrieved passages" in note for note in notes) is is_noted


def test_what_models_replied_between_passages_came_from_them() -> None:
    said = "It has been closed on every first Monday of the month, because of the cleaning, for many years."
    before = call(f"Tell me of Mondays.\n{QUESTION}", said, at=1)
    notes = notes_of((HOURS, TICKETS), f"{HOURS}\n{said}\n{TICKETS}", before)
    assert not any("text beside the retrieved passages" in note for note in notes)


def notes_of(known: tuple[str, ...], shown: str, *before: Step) -> tuple[str, ...]:
    """What is doubtful about a turn that retrieved some texts, and showed one to a model."""
    contexts = tuple(Context(text=one) for one in known)
    look = Step(kind="retrieval", given=QUESTION, contexts=contexts, at=1)
    last = call(f"Keep to the leaflet.\n{shown}\n{QUESTION}", "From ten to five.", at=2)
    turn = Steps(given={"question": QUESTION}, steps=(*before, look, last), answer="From ten to five.")
    return decide(turn, sources_of(turn), answer=turn.answer, question=QUESTION).notes


def test_arguments_that_hold_themselves_are_read_to_a_depth() -> None:
    given: dict[str, Any] = {"q": QUESTION}
    given["all"] = given
    tool = Step(kind="tool", name="hours", given=given, returned=HOURS, at=1)
    assert evidence(tool, call(f"{HOURS}\n{QUESTION}", "From ten to five.", at=2)) == [HOURS]


def test_a_passage_reaches_a_prompt_that_holds_it_as_json_writes_it() -> None:
    rule = "Fahrräder werden zwölf Tage lang zurückgenommen,\nSchläuche nur ungeöffnet."
    assert reaches(rule, [f"Unterlagen: {json.dumps([{'text': rule}])}"])
    assert not reaches(rule, [f"Unterlagen: {json.dumps([{'text': 'Die Werkstatt öffnet um zehn Uhr.'}])}"])


def test_a_block_behind_known_passages_in_a_text_that_a_step_made_counts() -> None:
    web = "Since May the southern gate is closed, says the museum's own page."
    joined = f"{HOURS}\n\n{web}"
    steps = [
        Step(kind="retrieval", given=QUESTION, contexts=(Context(text=HOURS),), at=1, ended=1.5),
        Step(kind="chain", returned={"gathered": joined}, at=2, ended=2),
        call(f"{joined}\n\n{QUESTION}", "From ten to five.", at=3),
    ]
    assert evidence(*steps) == [HOURS, web]
    head = f"{HOURS}\n\nfile: house.pdf, page 3 of 9\n\n{TICKETS}"
    steps[0].contexts = Context(text=HOURS), Context(text=TICKETS)
    steps[1].returned, steps[2] = {"gathered": head}, call(f"{head}\n\n{QUESTION}", "From ten to five.", at=3)
    assert evidence(*steps) == [HOURS, TICKETS]


@pytest.mark.parametrize("head", ["Evidence:\n", "EVIDENCE\n", "RETRIEVED CHUNKS\n"])
@pytest.mark.parametrize("title", ["", "Opening hours of all the museums | a web page | undated | /a.html\n"])
def test_numbered_parts_of_what_is_guessed_are_passages(head: str, title: str) -> None:
    parts = f"[1] {title}{HOURS}\n[2] {title}{TICKETS}"
    prompt = f"Question: {QUESTION}\nToday: Monday\nNotes of the planner: none\n\n{head}{parts}"
    assert evidence(call(prompt, "From ten to five.", at=1)) == [HOURS, TICKETS]


def test_an_answer_whose_citation_code_made_a_link_is_the_reply_still() -> None:
    made = call(f"{HOURS}\n{QUESTION}", "It opens at ten on Sundays [ab1].", at=2)
    found = Step(kind="retrieval", contexts=(Context(text=HOURS), Context(text=TICKETS)), at=1, ended=1.5)
    assert evidence(found, made, answer="It opens at ten on Sundays [1](https://example.org/ab1).") == [HOURS]


def test_what_a_tool_told_that_nobody_saw_run_counts_beside_one_that_ran() -> None:
    form = Step(kind="tool", name="Form", given={"reason": "allowed"}, returned="reason='allowed'", at=1)
    told = (
        Message(role="user", text=QUESTION),
        Message(role="assistant", text=""),
        Message(role="tool", text=HOURS, result=HOURS),
    )
    last = call(HOURS, "From ten to five.", at=2)
    last.messages = told
    assert evidence(form, last) == [HOURS]
    form.failed, form.returned = True, None
    assert evidence(form, last) == []  # it may be what that one said


def test_a_second_place_for_passages_with_text_that_nobody_saw_come_is_noted() -> None:
    found = Step(kind="retrieval", given=QUESTION, contexts=(Context(text=HOURS),), at=1, ended=1.5)

    def notes(prompt: str) -> str:
        steps = [found, call(f"{prompt}\n\nQuestion: {QUESTION}", "From ten to five.", at=2)]
        turn = Steps(given={"question": QUESTION}, steps=steps, answer="From ten to five.")
        return " ".join(decide(turn, sources_of(turn), answer=turn.answer, question=QUESTION).notes)

    rule = "-" * 20
    documents, results = (
        f"{name} is below.\n{rule}\n{{}}\n{rule}\n" for name in ("Context", "Search context")
    )
    assert "beside" in notes(documents.format(HOURS) + results.format(TICKETS))
    assert "beside" not in notes(documents.format(HOURS))


@pytest.mark.parametrize(
    "returned",
    [
        "pass_on_to_writer",
        json.dumps({"error": "No opening hours were found."}),
        json.dumps({"results": [], "message": "No results found for your question."}),
    ],
)
def test_a_tool_that_says_its_name_or_that_there_is_nothing_brought_nothing(returned: str) -> None:
    tool = Step(kind="tool", name="pass_on_to_writer", given={}, returned=returned, at=1)
    assert (
        evidence(tool, call(f"{returned}\n{QUESTION}", "Nobody knows.", at=2), answer="Nobody knows.") == []
    )


def test_a_tools_fields_are_evidence_if_one_of_them_says_that_there_is_nothing() -> None:
    returned = json.dumps({"price": 12, "remark": "No results found for a discount."})
    tool = Step(kind="tool", name="get_price", given={}, returned=returned, at=1)
    assert evidence(tool, call(f"{returned}\n{QUESTION}", "Twelve.", at=2), answer="Twelve.") == [returned]
