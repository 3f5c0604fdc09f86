"""From candidates and calls to the context fields of a record."""

from __future__ import annotations

import json

import pytest

from recording.provenance.passages import KILN, PRESS, TIDE, found
from steelyard.record import Context
from steelyard.recording.provenance import NOTES, ModelCall, is_turn, trace_provenance

ONE = Context(text="Memory\nShort-term memory is what fits into the window of a model.", id="1")
TWO = Context(text="Tools are APIs.", id="2")
WEB = Context(text="The web says that agents plan, remember and act by means of tools.", id="3")
ANSWER = "Agents plan and remember, and they use tools to act."


def named(notes: tuple[str, ...]) -> list[str]:
    names = [note.split(":")[0].split(" ")[0] for note in notes]
    assert set(names) <= set(NOTES)
    return names


def test_documents_shown_by_python_are_all_found_in_the_order_of_the_prompt() -> None:
    shown = f"[Document(page_content={TWO.text!r}), Document(page_content={ONE.text!r})]"
    call = ModelCall(prompts=(f"Context: {shown}",), reply=ANSWER)
    found = trace_provenance([ONE, TWO], [call], answer=ANSWER)
    assert [(one.id, one.seen, one.in_prompt) for one in found.contexts] == [
        ("2", 1.0, True),
        ("1", 1.0, True),
    ]
    assert (found.contexts_source, found.retrieved, found.notes) == ("in_prompt", (), ())


def test_what_a_grader_saw_and_the_answer_did_not_is_kept_apart() -> None:
    grade = ModelCall(prompts=(f"Is this relevant? {ONE.text}",), reply="no", started=1)
    write = ModelCall(prompts=(f"Context: {WEB.text}",), reply=ANSWER, started=2)
    found = trace_provenance([ONE, WEB], [grade, write], answer=ANSWER)
    assert [one.id for one in found.contexts] == ["3"]
    assert [(one.id, one.seen, one.in_prompt) for one in found.retrieved] == [
        ("1", 0.0, False),
        ("3", 1.0, True),
    ]


def test_no_prompt_is_taken_where_the_answers_call_is_unknown() -> None:
    grade = ModelCall(prompts=(f"Is this relevant? {ONE.text}",), reply="no")
    found = trace_provenance([ONE, WEB], [grade], answer=ANSWER, source="tool")
    assert [one.id for one in found.contexts] == ["1", "3"]
    assert [(one.seen, one.in_prompt) for one in found.contexts] == [(None, None)] * 2
    assert found.contexts_source == "tool"
    assert named(found.notes) == ["answer_call_unknown", "no_prompt_seen"]


def test_a_rewritten_context_is_said_to_be_missing_from_the_prompt() -> None:
    call = ModelCall(prompts=("Context: a short summary of all there was.",), reply=ANSWER)
    found = trace_provenance([ONE, WEB], [call], answer=ANSWER)
    assert (found.contexts_source, named(found.notes)) == ("retrieved", ["contexts_not_in_prompt"])
    assert found.contexts == ()
    assert [one.in_prompt for one in found.retrieved] == [False, False]


def test_parts_and_undecided_passages_are_counted() -> None:
    half = ONE.text[: len(ONE.text) * 3 // 4]
    call = ModelCall(prompts=(f"Context: {half}",), reply=ANSWER)
    found = trace_provenance([ONE, Context(text="Paris")], [call], answer=ANSWER)
    assert [note.split(":")[0] for note in found.notes] == [
        "contexts_partly_in_prompt (1)",
        "contexts_undecided (1)",
    ]
    assert [one.in_prompt for one in found.retrieved] == [True, None]


def test_nothing_retrieved_is_said() -> None:
    found = trace_provenance([], [], answer=ANSWER)
    assert (found.contexts, named(found.notes)) == ((), ["no_contexts"])


def test_a_passage_brought_twice_is_one_context() -> None:
    call = ModelCall(prompts=(ONE.text,), reply=ANSWER)
    assert len(trace_provenance([ONE, ONE, WEB], [call], answer=ANSWER).contexts) == 1


def test_a_node_that_holds_what_a_model_replied_is_not_evidence_and_what_the_model_was_shown_is() -> None:
    shown, reply = "A dog pays 3 euros on board.", "Dogs travel for three euros each."
    node = f"Query: What does a dog pay?\nResponse: {reply}"
    calls = [
        ModelCall(prompts=(f"Context: {shown}",), reply=reply),
        ModelCall(prompts=(f"Context: {node}",), reply="Three euros for a dog, then.", started=1),
    ]
    found = trace_provenance([Context(text=shown), Context(text=node)], calls, answer=calls[1].reply)
    assert [one.text for one in found.contexts] == [shown]
    assert found.contexts_source == "in_prompt"


def test_a_passage_that_a_model_copied_from_stays_evidence() -> None:
    passage = "A dog pays 3 euros on board. Children under six travel free."
    calls = [
        ModelCall(prompts=(f"Extract what matters: {passage}",), reply="Children under six travel free."),
        ModelCall(
            prompts=("Context: Children under six travel free.",), reply="They pay nothing.", started=1
        ),
    ]
    found = trace_provenance([Context(text=passage)], calls, answer="They pay nothing.")
    assert [one.text for one in found.contexts] == [passage]


@pytest.mark.parametrize(
    ("reply", "kept"),
    [("Children under six travel free.", [1]), ("A dog pays 3 euros on board. It needs no seat.", [0, 2])],
)
def test_an_extract_takes_the_place_of_its_passage_and_a_passage_said_whole_of_none(
    reply: str, kept: list[int]
) -> None:
    passages = ["A dog pays 3 euros on board. It needs no seat.", "Children under six travel free.", "x"]
    passages[2] = f"{passages[1]} They need a card." if kept == [1] else "Bicycles are not taken on board."
    calls = [
        ModelCall(prompts=(f"What matters?\n{passages[0]}\n{passages[2]}",), reply=reply),
        ModelCall(prompts=(f"Context: {reply}",), reply="That is the rule then.", started=1),
    ]
    shown = passages if kept == [1] else passages[::2]
    found = trace_provenance([Context(text=one) for one in shown], calls, answer=calls[1].reply)
    assert [one.text for one in found.contexts] == [passages[at] for at in kept]


GRADER = "You are a grader assessing the relevance of a document. Give a binary score 'yes' or 'no'."


@pytest.mark.parametrize(
    ("prompt", "reply"),
    [
        (GRADER, "yes"),
        (GRADER, "Irrelevant"),
        (GRADER, '{"binary_score": "no"}'),
        ("Prüfe die Antwort.", '{"is_sufficient": true, "reason": "It names the law."}'),
        ("Bewerte die Antwort.", '{"topic_exhausted": false, "score": 7, "search_query": "ferry"}'),
        ("Classify it.\nA question -> answer_a_question\nElse -> create_a_ticket", "answer_a_question"),
        ("Route the question to a datasource.", '{"datasource": "websearch"}'),
        ("Order the passages by how relevant they are.", "[2] > [1]"),
        ("Rate the relevance of each document.", "Doc: 2, Relevance: 9\nDoc: 1, Relevance: 4"),
        ("Given the query 'x', is retrieval necessary? Output only 'Yes' or 'No'.", "Yes"),
        ("Classify the query as one of: Factual, Analytical, or Opinion.\nQuery: x", "Factual"),
        ("Rewrite this for the web: When does it leave?", "ferry Sunday news"),
        ("Generate 2 sub-questions for: x", "1. opening hours\n2. price of entry"),
        ("Rewrite the question for a vector store.", "What is a steelyard made of?"),
        ("Write three different versions of it.", "What is it?\nWhat for?\nHow old is it?"),
        (
            "Rephrase this as a standalone question.\nFollow Up Input: ok, thanks!\nStandalone question:",
            "ok, thanks!",
        ),
    ],
)
def test_helpers_calls_are_not_turns(prompt: str, reply: str) -> None:
    assert not is_turn([ModelCall(prompts=(prompt,), reply=reply)], answer=reply)
    assert is_turn([ModelCall(prompts=(prompt,), structured=reply)], answer="") is False


@pytest.mark.parametrize(
    ("prompt", "reply"),
    [
        ("Context: Rome is in Italy. Is Rome in Italy?", "Yes."),
        ("Context: ... What is the capital?", "Paris"),
        ("How many?", "42"),
        ("How many of each?", "Adults: 12, Children: 30"),
        ("Reply as JSON.", '{"found": true, "text": "The ferry leaves at seven."}'),
        (GRADER, "The document speaks of steelyards, and the question asks about them."),
        ("What did the teacher grade?", "He graded the essays of his class, and found most of them good."),
        ("Classify the animal in the text: The wolf sleeps.", "A mammal"),
        ("Write an article on search. Keywords: scales.", "Scales have weighed goods for long."),
        ("Rewrite this letter.", "Dear Sir, your steelyard has arrived."),
        ("Ask me something.", "What would you like to know?"),
    ],
)
def test_answers_are_turns_however_short(prompt: str, reply: str) -> None:
    assert is_turn([ModelCall(prompts=(prompt,), reply=reply)], answer=reply)


@pytest.mark.parametrize(
    "form", ['{"tone": 2, "why": "It is kind."}', '{"answer": 84, "why": "As counted."}']
)
@pytest.mark.parametrize("number", ["84", "0.667"])
def test_a_number_made_of_a_form_is_no_turn_unless_the_form_calls_it_the_answer(
    form: str, number: str
) -> None:
    call = ModelCall(prompts=("How many?",), reply=form)
    assert is_turn([call], answer=number) is ("84" in form and number == "84")
    assert is_turn([call], answer=number, retrieved=True)
    assert is_turn([ModelCall(prompts=call.prompts, reply=f"There are {number}.")], answer=number)


def test_what_retrieved_is_a_turn_and_so_is_what_called_no_model() -> None:
    call = ModelCall(prompts=(GRADER,), reply="yes")
    assert is_turn([call], answer="yes", retrieved=True)


def test_a_run_that_rewrites_on_the_way_and_says_its_question_back_is_a_turn() -> None:
    asked = "How does a steelyard weigh?"
    ask = ModelCall(prompts=(f"Rephrase as a standalone question: {asked}",), reply="How do steelyards work?")
    echo = ModelCall(prompts=(asked,), reply=asked, started=1)
    assert is_turn([ask, echo], answer=asked)
    assert not is_turn([ask], answer=ask.reply)
    assert is_turn([], answer="yes")


def test_a_known_query_is_not_a_turn_where_the_prompt_asked_for_one() -> None:
    call = ModelCall(prompts=("Decompose the question.",), reply="steelyard counterweight")
    assert is_turn([call], answer=call.reply, queries=["Steelyard counterweight"]) is False
    assert is_turn([call], answer=call.reply)


def test_a_form_with_a_route_is_not_a_turn_although_its_label_is_what_the_root_returned() -> None:
    ask = "Route the question to the data source that can answer it."
    routed = ModelCall(prompts=(ask,), arguments=('{"datasource": "harbour_pages"}',))
    assert not is_turn([routed], answer="harbour_pages")
    answered = ModelCall(prompts=(ask,), arguments=('{"answer": "From the pier.", "datasource": "pages"}',))
    assert is_turn([answered], answer="From the pier.")


def test_a_window_is_not_shown_by_those_beside_it() -> None:
    said = [*TIDE.split(". ")[:2], *KILN.split(". ")[:2], PRESS.split(". ")[0]]
    windows = [". ".join(said[at : at + 3]) for at in range(3)]
    assert found(windows, f"{windows[0]}.\n\n{windows[2]}.") == [True, False, True]
    assert found(windows, f"{windows[1]}.\n\n{windows[2]}.") == [False, True, True]


def test_a_result_that_holds_a_summary_out_of_a_form_is_no_passage() -> None:
    page = "Grid batteries fell in price by a third in two years, above all for cheaper cells."
    form = {
        "summary": "Batteries of four hours cost far less than in 2023.",
        "excerpts": "above all for cells",
    }
    summary = ModelCall(prompts=(f"Sum up: {page}",), reply=json.dumps(form))
    found = f"SOURCE 1: https://s.example\n{form['summary']}\n{form['excerpts']}"
    write = ModelCall(prompts=(f"Findings: {found}",), reply="They cost less.", started=1)
    made = trace_provenance([Context(text=found), Context(text=page)], [summary, write], answer=write.reply)
    assert [one.text for one in made.contexts] == [page]
