"""Calls that plain Python makes one after the other: a search, then a stream or a run that is shown it."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Iterator
from typing import Any

import pytest
from llama_index.core import PromptTemplate
from llama_index.core.agent.workflow import FunctionAgent
from llama_index.core.base.llms.types import ChatMessage, CompletionResponse
from llama_index.core.bridge.pydantic import BaseModel
from llama_index.core.chat_engine import SimpleChatEngine
from llama_index.core.evaluation import CorrectnessEvaluator
from llama_index.core.llms.callbacks import llm_completion_callback
from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.core.response_synthesizers import get_response_synthesizer
from llama_index.core.response_synthesizers.no_text import NoText
from llama_index.core.retrievers import BaseRetriever
from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode
from llamaindex_parts import ANSWER, FRANCE, PARIS, QUESTION, Caller, Fixed, Receiver, Scripted, texts

from steelyard_llamaindex import record


class Kept(BaseRetriever):
    """Finds the nodes that it was given."""

    def __init__(self, *nodes: NodeWithScore) -> None:
        super().__init__()
        self.nodes = list(nodes)

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return self.nodes


async def _streamed(way: str, prompt: str) -> str:
    messages = [ChatMessage(role="user", content=prompt)]
    if way == "stream_chat":
        return "".join(piece.delta or "" for piece in Scripted().stream_chat(messages))
    if way == "stream_complete":
        return "".join(piece.delta or "" for piece in Scripted().stream_complete(prompt))
    if way == "astream_chat":
        return "".join([piece.delta or "" async for piece in await Scripted().astream_chat(messages)])
    return "".join([piece.delta or "" async for piece in await Scripted().astream_complete(prompt)])


@pytest.mark.parametrize("way", ["stream_chat", "stream_complete", "astream_chat", "astream_complete"])
def test_separate_calls_of_which_one_streams_are_put_together(receiver: Receiver, way: str) -> None:
    async def asks() -> str:
        (found,) = Fixed("d1").retrieve(QUESTION)
        return await _streamed(way, f"{found.text}\n\nQuestion: {QUESTION}")

    assert asyncio.run(asks()) == ANSWER
    turn = receiver.record
    assert (turn.question, texts(turn), turn.answer) == (QUESTION, [PARIS], ANSWER)
    assert (turn.status, turn.evidence) == ("ok", "known")


@pytest.mark.parametrize("is_closed", [True, False], ids=["closed", "thrown away"])
def test_a_separate_stream_that_is_left_has_what_was_read(receiver: Receiver, is_closed: bool) -> None:
    (found,) = Fixed("d1").retrieve(QUESTION)
    stream = Scripted().stream_complete(f"{found.text}\n\nQuestion: {QUESTION}")
    assert [next(stream).delta, next(stream).delta] == ["The", " capital"]
    if is_closed:
        stream.close()
    del stream
    gc.collect()
    assert (receiver.record.status, receiver.record.answer) == ("truncated", "The capital")


def test_a_separate_stream_that_fails_has_what_was_read(receiver: Receiver) -> None:
    class Breaks(Scripted):
        @llm_completion_callback()
        def stream_complete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> Any:
            def stream() -> Iterator[CompletionResponse]:
                yield CompletionResponse(text="The", delta="The")
                raise ConnectionError("down")

            return stream()

    (found,) = Fixed("d1").retrieve(QUESTION)
    with pytest.raises(ConnectionError):
        list(Breaks().stream_complete(f"{found.text}\n\nQuestion: {QUESTION}"))
    turn = receiver.record
    assert (turn.status, turn.answer, turn.error) == ("error", "The", "ConnectionError: down")


def test_separate_streams_that_nobody_reads_leave_nothing(receiver: Receiver) -> None:
    for _ in range(20):
        Scripted().stream_complete(f"{PARIS}\n\nQuestion: {QUESTION}")
    gc.collect()
    assert receiver.records == []


@pytest.mark.parametrize("runs", ["engine", "agent", "block"])
async def test_what_was_retrieved_before_a_run_counts_if_its_prompt_holds_it(
    receiver: Receiver, runs: str
) -> None:
    Fixed("d1").retrieve(QUESTION)
    Fixed("d3").retrieve("And of Germany?")
    prompt = f"Context:\n{PARIS}\n\nQuestion: {QUESTION}"
    if runs == "engine":
        SimpleChatEngine.from_defaults(llm=Scripted()).chat(prompt)
    elif runs == "agent":
        await FunctionAgent(llm=Caller(script=[ANSWER]), system_prompt="Be brief.").run(prompt)
    else:
        with record(question=QUESTION):
            Scripted().complete(prompt)
    turn = receiver.record
    assert (turn.question, texts(turn), turn.contexts[0].id) == (QUESTION, [PARIS], "d1")
    assert (turn.evidence, turn.answer) == ("known", ANSWER)


def test_a_text_of_the_metadata_that_the_prompt_shows_takes_the_place_of_the_node_s(
    receiver: Receiver,
) -> None:
    kept = {
        "query": "SELECT * FROM orders WHERE status = 'open' ORDER BY date",
        "about": "orders that are open, by date",
    }
    found = NodeWithScore(node=TextNode(id_="q1", text="show the open orders", metadata=kept), score=0.9)
    (shown,) = Kept(found).retrieve("Which orders are open?")
    Scripted().complete(f"Similar queries:\n{shown.metadata['query']}\n\nQuestion: Which orders are open?")
    assert [(one.text, one.id, one.seen) for one in receiver.record.contexts] == [(kept["query"], "q1", 1.0)]


def test_a_stream_that_says_nothing_is_noted(receiver: Receiver) -> None:
    query = RetrieverQueryEngine.from_args(Fixed("d1"), llm=Scripted(say=lambda prompt: ""), streaming=True)
    answer: Any = query.query(QUESTION)
    assert list(answer.response_gen) == [""]
    assert receiver.record.notes == ("answer: the stream said nothing",)


@pytest.mark.parametrize("question", [QUESTION, "Tell me more!"])
def test_a_prompt_around_what_was_searched_for_in_vain_is_noted(receiver: Receiver, question: str) -> None:
    Kept().retrieve(question)
    SimpleChatEngine.from_defaults(llm=Scripted()).chat(
        f"QUESTION: {question}\n=====\n\n=====\nFINAL ANSWER:"
    )
    assert any(note.startswith("question_whole_prompt") for note in receiver.record.notes)


def test_what_a_thread_found_for_the_event_loop_belongs_to_the_call_that_shows_it(receiver: Receiver) -> None:
    found = "The lighthouse of Skarholm was built in 1868 and its lens came from Paris."

    async def answers(question: str) -> None:
        kept = Kept(NodeWithScore(node=TextNode(text=found), score=0.5))
        (shown,) = await asyncio.to_thread(kept.retrieve, question)
        await Scripted().acomplete(f"{shown.text}\n\nQuestion: {question}")

    asyncio.run(answers("When was the lighthouse built?"))
    asyncio.run(answers("Where did the lens come from?"))
    first, second = receiver.records
    assert [first.question, second.question] == [
        "When was the lighthouse built?",
        "Where did the lens come from?",
    ]
    assert (texts(first), texts(second)) == ([found], [found])
    assert {(turn.evidence, turn.contexts[0].score) for turn in (first, second)} == {("known", None)}


async def test_nodes_that_a_thread_found_belong_to_the_synthesizer_that_is_given_them(
    receiver: Receiver,
) -> None:
    found = "The lighthouse of Skarholm was built in 1868 and its lens came from Paris."

    kept = Kept(NodeWithScore(node=TextNode(text=found), score=0.5))
    nodes = await asyncio.to_thread(kept.retrieve, "lens of the lighthouse")
    await get_response_synthesizer(llm=Scripted()).asynthesize("Tell me about the lens", nodes=nodes)
    turn = receiver.record
    assert (turn.question, texts(turn), turn.evidence) == ("Tell me about the lens", [found], "known")


def test_nodes_of_an_engine_that_says_nothing_belong_to_the_call_after_it(receiver: Receiver) -> None:
    engine = RetrieverQueryEngine(retriever=Fixed("d1"), response_synthesizer=NoText(llm=Scripted()))
    (found,) = engine.query(QUESTION).source_nodes
    Scripted().complete(f"{found.text}\n\nQuestion: {QUESTION}")
    silent, turn = receiver.records
    assert (silent.answer, silent.notes[0].partition(":")[0]) == ("", "answer")
    assert (turn.question, texts(turn), turn.answer, turn.evidence) == (QUESTION, [PARIS], ANSWER, "known")


def test_what_an_evaluator_sends_a_model_is_no_turn(receiver: Receiver) -> None:
    asked = f"Context:\n{PARIS}\n\nQuestion: {QUESTION}"
    evaluator = CorrectnessEvaluator(llm=Scripted(say=lambda prompt: "4.0\nIt fits."))
    found = evaluator.evaluate(query=asked, response=ANSWER, reference=PARIS)
    assert found.feedback == "It fits."
    assert not receiver.records
    Scripted().complete(asked)
    assert receiver.record.answer == ANSWER


KEPT = "Answer from these notes alone.\n\nNotes:\n{notes}\n\nQuestion: {question}\nAnswer:"


@pytest.mark.parametrize(
    ("later", "is_turn"),
    [
        (KEPT, True),
        ("Suggest three questions.\n\nNotes:\n{notes}\n\nQuestion: {question}", False),
        ("Notes:\n{notes}\n\nQuestion: {question}\nAnswer: {answer}\nIs that supported?", False),
    ],
    ids=["the same template", "another task", "a check"],
)
def test_what_code_kept_is_known_to_a_later_call_by_the_same_template(
    receiver: Receiver, later: str, is_turn: bool
) -> None:
    notes = "\n".join(found.text for found in Fixed("d1", "d2").retrieve(QUESTION))
    Scripted().complete(KEPT.format(notes=notes, question=QUESTION))
    asked = "Which river runs through it?" if is_turn else QUESTION
    Scripted().complete(later.format(notes=notes, question=asked, answer=ANSWER))
    expected = [(asked, [PARIS, FRANCE])] * is_turn
    assert [(turn.question, texts(turn)) for turn in receiver.records[1:]] == expected


def test_files_that_engines_answered_from_are_what_their_answers_put_together_rest_on(
    receiver: Receiver,
) -> None:
    said = iter(["The first file names the city of Paris.", "The second file tells of France alone."])
    model = Scripted(say=lambda prompt: next(said))
    parts = [
        str(RetrieverQueryEngine.from_args(Fixed(key), llm=model).query(QUESTION)) for key in ("d1", "d2")
    ]
    Scripted().complete(
        "Combine these answers.\n\n" + "\n".join(parts) + f"\n\nQuestion: {QUESTION}\nAnswer:"
    )
    whole = receiver.records[-1]
    assert (whole.question, texts(whole), whole.answer) == (QUESTION, [PARIS, FRANCE], ANSWER)


def test_a_refusal_that_every_prompt_asks_for_makes_no_parts_of_the_turns_before(receiver: Receiver) -> None:
    refusal = "There is nothing on this in the documents."
    for key in ("d1", "d2", "d1"):
        found = Fixed(key).retrieve(QUESTION)
        Scripted(say=lambda _: refusal).complete(
            f"If nothing is there, say: {refusal}\n\nContext:\n{found[0].text}\n\nQuestion: {QUESTION}"
        )
    assert [texts(turn) for turn in receiver.records] == [[PARIS], [FRANCE], [PARIS]]


REPLY = "By the pages it is Paris, and has been for long."


@pytest.mark.parametrize("names", [True, False])
def test_what_a_later_call_makes_of_an_engines_reply_is_an_answer_too(
    receiver: Receiver, names: bool
) -> None:
    """Where its prompt names the question; else a note on the engine's turn says so, as on later ones."""
    engine = RetrieverQueryEngine.from_args(Fixed("d1"), llm=Scripted(say=lambda _: REPLY))
    ends = f"\n\nQuestion: {QUESTION}" if names else ""
    Scripted().complete(f"Say this in a kind way.\n\nFound: {engine.query(QUESTION)}{ends}")
    first, *more = receiver.records
    assert [(turn.question, texts(turn), turn.answer) for turn in more] == [
        (QUESTION, [PARIS], ANSWER)
    ] * names
    assert first.answer == REPLY
    assert _noted(receiver)[0]


def test_a_reply_in_a_conversation_is_not_made_into_another(receiver: Receiver) -> None:
    engine = RetrieverQueryEngine.from_args(Fixed("d1"), llm=Scripted(say=lambda _: REPLY))
    said = ChatMessage(role="assistant", content=str(engine.query(QUESTION)))
    Scripted().chat([said, ChatMessage(role="user", content="Thanks!")])
    Scripted().complete(f"User: {QUESTION}\nAssistant: {said.content}\nUser: Thanks!")
    first, second = receiver.records
    assert not first.notes
    assert (second.question, texts(second)) == ("Thanks!", [])


NOTED = "answer: such a run's reply was sent on or asked for again"


def _query(question: str = QUESTION, reply: str = REPLY) -> str:
    return str(RetrieverQueryEngine.from_args(Fixed("d1"), llm=Scripted(say=lambda _: reply)).query(question))


def _noted(receiver: Receiver) -> list[bool]:
    return [any(note.startswith(NOTED) for note in turn.notes) for turn in receiver.records]


def test_two_engines_that_are_asked_the_same_may_have_answered_together(receiver: Receiver) -> None:
    _query("When was the tower built?")
    _query()
    _query()
    assert _noted(receiver) == [True] * 3, "records that are built later know of it"
    for at in range(12):
        _query(f"What is in room {at} of the tower?")
    assert not _noted(receiver)[-1], "it did not come again for long"


def test_what_a_router_is_told_was_said_before_was_no_step_to_an_answer(receiver: Receiver) -> None:
    """In a language that no list knows: the next run is asked what the router was, and not that."""
    before = "When was the tower built?"
    said = f"Spytano: {before}\nRzeczono: {_query(before)}\nTeraz: {QUESTION}\nDział [MIASTA, WIEŻE]:"
    Scripted(say=lambda _: "DZIAŁ: MIASTA\nPEWNOŚĆ: 0.9").complete(said)
    _query()
    assert [turn.question for turn in receiver.records] == [before, QUESTION]
    assert _noted(receiver) == [False, False]


@pytest.mark.parametrize("is_named", [True, False])
def test_a_question_that_a_model_wrote_is_not_what_an_answer_is_about(
    receiver: Receiver, is_named: bool
) -> None:
    """A service was searched for it, unseen; the prompt may name the user's own words, too."""
    own = "Quelle est la capitale de la France ?"
    Scripted(say=lambda _: QUESTION).complete(f"Translate this. Return only the translation.\n{own}")
    named = f"Question (FR): {own}\n" * is_named + f"Question (EN): {QUESTION}"
    Scripted().complete(f"{named}\n\nSources:\n[1] {PARIS}\n\n[2] {FRANCE}")
    turn = receiver.record
    assert (turn.question, turn.standalone_question) == ((own, QUESTION) if is_named else (QUESTION, None))
    assert (turn.answer, len(turn.contexts), turn.evidence) == (ANSWER, 2, "guessed")
    assert any(n.startswith("question_rewritten_only") for n in turn.notes) is not is_named


def test_what_an_evaluator_is_sent_was_no_step_to_an_answer(receiver: Receiver) -> None:
    judge = Scripted(say=lambda _: "4.0\nIt is right.")
    CorrectnessEvaluator(llm=judge).evaluate(query=QUESTION, response=_query(), reference=REPLY)
    assert _noted(receiver) == [False]


@pytest.mark.parametrize(
    ("reply", "words", "is_noted"),
    [(REPLY, 10, True), (REPLY, 20_000, False), ("In Paris.", 10, False)],
    ids=["short", "too-long", "by-chance"],
)
def test_a_reply_is_looked_for_in_prompts_that_are_not_too_long(
    receiver: Receiver, reply: str, words: int, is_noted: bool
) -> None:
    Scripted().complete(f"Shorten this: {_query(reply=reply)} {'and so on ' * words}")
    assert _noted(receiver)[0] is is_noted


@pytest.mark.parametrize("asked", ["Ciao!", "e poi?"])
def test_a_few_words_that_were_looked_up_and_stand_behind_a_label_are_the_question(
    receiver: Receiver, asked: str
) -> None:
    (found,) = Fixed("d1").retrieve(asked)
    Scripted().complete(
        f"Informazioni: {found.text}\n\nCronologia: Ospite: Dove si mangia?\nMessaggio: {asked}\nRisposta:"
    )
    assert (receiver.record.question, texts(receiver.record)) == (asked, [PARIS])


ASKED = PromptTemplate("Answer from the notes.\n\n{context_str}\n\nAsked: {query_str}")


def test_what_a_model_fills_a_template_with_by_itself_is_known(receiver: Receiver) -> None:
    for notes in (PARIS, ""):
        assert Scripted().predict(ASKED, context_str=notes, query_str=QUESTION) == ANSWER
    asyncio.run(Scripted().apredict(ASKED, context_str=FRANCE, query_str=QUESTION))
    said = [(turn.question, texts(turn), turn.answer) for turn in receiver.records]
    assert said == [(QUESTION, [PARIS], ANSWER), (QUESTION, [], ANSWER), (QUESTION, [FRANCE], ANSWER)]
    Scripted().predict(PromptTemplate("A title for this: {context_str}"), context_str=PARIS)
    Scripted().predict(PromptTemplate("Which language is this? {query_str}"), query_str=QUESTION)
    assert len(receiver.records) == 3, "nothing was asked, or no place is for passages"


def test_a_form_that_a_model_fills_in_is_an_answer_and_no_look_up(receiver: Receiver) -> None:
    class City(BaseModel):
        name: str

    model = Caller(script=[("City", {"name": "Paris"})])
    model.structured_predict(City, ASKED, context_str=PARIS, query_str=QUESTION)
    record = receiver.record
    assert (record.question, texts(record), record.answer) == (QUESTION, [PARIS], '{"name":"Paris"}')
    assert record.contexts_source == "in_prompt"
    assert any(note.startswith("answer: a form") for note in record.notes), "code shows what it makes of it"


def test_messages_that_begin_alike_are_questions_as_they_were_looked_up(receiver: Receiver) -> None:
    asked = [f"Hello,\n\n{said}\n\nThanks!" for said in (QUESTION, "Tell me more!")]
    for one in asked:
        found = Fixed("d1").retrieve(one)
        SimpleChatEngine.from_defaults(llm=Scripted()).chat(
            f"Be brief.\n\nQuestion:\n{one}\n\nNotes:\n{found[0].text}"
        )
    assert [turn.question for turn in receiver.records] == asked


def test_few_words_that_were_looked_up_are_the_question_whatever_sign_a_template_ends_them_with(
    receiver: Receiver,
) -> None:
    found = Fixed("d1").retrieve("good day")
    Scripted().complete(f"Is there a line that answers this: good day?\n\nLines:\n{found[0].text}")
    assert receiver.record.question == "good day"


@pytest.mark.parametrize("place", ["", "[]"])
def test_a_prompt_whose_place_for_passages_is_empty_is_of_a_turn_that_found_nothing(
    receiver: Receiver, place: str
) -> None:
    Scripted().complete(f"Answer by the context alone.\n\nContext: {place}\n\nQuestion: {QUESTION}")
    turn = receiver.record
    assert (turn.question, texts(turn), turn.answer) == (QUESTION, [], ANSWER)
    Scripted().complete(f"Be friendly.\n\nQuestion: {QUESTION}")
    assert receiver.records == [turn]
