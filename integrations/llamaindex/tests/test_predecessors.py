"""Runs that are built upon what a model replied in a run before: each says so, and no others do."""

from __future__ import annotations

import asyncio
import contextvars
import gc
import weakref
from typing import Any

import pytest
from llama_index.core import PromptTemplate
from llama_index.core.agent.workflow import FunctionAgent
from llama_index.core.base.llms.types import ChatMessage
from llama_index.core.chat_engine import ContextChatEngine
from llama_index.core.memory import ChatMemoryBuffer, Memory
from llama_index.core.schema import NodeWithScore, TextNode
from llama_index.core.tools import FunctionTool
from llamaindex_parts import ANSWER, FRANCE, PARIS, QUESTION, Caller, Fixed, Receiver, Scripted, engine, texts

from steelyard_llamaindex import record

WRITTEN = "question_rewritten_only"
SHOWN = "this run was shown what a model replied"
SEARCHED = "capital city France population size"
PART = "The capital of France is the city of Paris on the river Seine."


def signs(receiver: Receiver) -> list[list[str]]:
    """Which of the two notes each record has."""
    return [
        [sign for sign in (WRITTEN, SHOWN) if any(note.startswith(sign) for note in record.notes)]
        for record in receiver.records
    ]


def test_a_query_that_a_model_wrote_before_the_engine_was_asked_is_said_to_be_one(receiver: Receiver) -> None:
    written = str(Scripted(say=lambda prompt: f"1. {SEARCHED}").complete(f"Rewrite: {QUESTION}"))
    engine().query(written.removeprefix("1. "))
    assert receiver.record.question == SEARCHED
    assert signs(receiver) == [[WRITTEN]]


@pytest.mark.parametrize(
    ("message", "notes"), [("Hello, I look for a bicycle with three gears", [WRITTEN]), ("User: {}", [])]
)
def test_what_a_model_picked_out_of_a_message_to_search_for_is_not_what_the_user_asked(
    receiver: Receiver, message: str, notes: list[str]
) -> None:
    query = "bicycle with three gears"
    form = f'{{"action": "search", "query": "{query}"}}'
    Scripted(say=lambda prompt: form).complete(f"Which action?\n{message.format(query)}")
    engine().query(query)
    assert signs(receiver) == [notes]


def test_asynchronous_and_streamed_runs_are_followed_too(receiver: Receiver) -> None:
    async def main() -> None:
        written = await Scripted(say=lambda prompt: SEARCHED).acomplete(f"Rewrite: {QUESTION}")
        await engine().aquery(str(written))

    contextvars.copy_context().run(asyncio.run, main())
    told = "".join(_response_gen(engine(streaming=True, say=lambda prompt: PART).query(QUESTION)))
    engine().query(f"What is that city known for? It was said: {told}")
    assert signs(receiver) == [[WRITTEN], [], []]
    # The same text in the prompt, and not as a part of the question.
    engine(text_qa_template=_beside(told)).query("What is that city known for?")
    assert signs(receiver)[-1] == [SHOWN]


def _response_gen(response: Any) -> Any:
    return response.response_gen


def _beside(told: str) -> Any:
    return PromptTemplate(f"Known: {told}\nContext: {{context_str}}\nQuery: {{query_str}}\nAnswer: ")


def test_questions_asked_one_after_the_other_have_no_note(receiver: Receiver) -> None:
    for question in (QUESTION, "What is the capital of Germany?", QUESTION):
        Scripted(say=lambda prompt: "Certainly, let me look that up for you now.").complete(
            f"Greet: {question}"
        )
        engine(say=lambda prompt: PART).query(question)
    assert signs(receiver) == [[], [], []]


def test_a_conversation_is_no_chain_of_parts(receiver: Receiver) -> None:
    chat = ContextChatEngine.from_defaults(
        retriever=Fixed(), llm=Scripted(say=lambda prompt: PART), memory=ChatMemoryBuffer.from_defaults()
    )
    for message in (QUESTION, "And on which river is it?"):
        chat.chat(message)
    assert signs(receiver) == [[], []]


def test_what_a_model_wrote_into_the_passages_at_indexing_does_not_count(receiver: Receiver) -> None:
    title = str(
        Scripted(say=lambda prompt: "Capitals of Europe and the rivers that they stand at").complete("T")
    )

    class Titled(Fixed):
        def _retrieve(self, query_bundle: Any) -> list[NodeWithScore]:
            return [
                NodeWithScore(node=TextNode(text=each.text, metadata={"title": title}))
                for each in super()._retrieve(query_bundle)
            ]

    engine(retriever=Titled()).query(QUESTION)
    assert signs(receiver) == [[]]


async def test_other_tasks_and_blocks_are_not_followed(receiver: Receiver) -> None:
    async def one(question: str) -> None:
        await engine(say=lambda prompt: SEARCHED).aquery(question)

    await asyncio.gather(one(QUESTION), one(SEARCHED))
    with record(QUESTION):
        written = str(Scripted(say=lambda prompt: SEARCHED).complete(f"Rewrite: {QUESTION}"))
        engine().query(written)
    assert signs(receiver) == [[], [], []]


def test_a_model_call_by_itself_is_neither_a_turn_nor_kept(receiver: Receiver) -> None:
    class Held(str):
        __slots__ = ("__weakref__",)

    held = Held("x" * 60_000)
    gone = weakref.ref(held)
    assert str(Scripted().complete(held)) == ANSWER
    assert "".join(piece.delta or "" for piece in Scripted().stream_complete("Say it.")) == ANSWER
    del held
    gc.collect()
    assert gone() is None
    assert receiver.records == []


ROUTED = (
    "Sort it.\n\nContext:\n1. RULES: what is allowed.\n2. PEOPLE: who is who and what for.\n\nQuestion: {}"
)


@pytest.mark.parametrize("asked", [QUESTION, "hi there"])
@pytest.mark.parametrize("way", ["engine", "agent", "form"])
async def test_a_call_that_the_next_run_is_asked_the_same_as_is_a_step(
    receiver: Receiver, way: str, asked: str
) -> None:
    if way == "form":
        Scripted().predict(PromptTemplate(ROUTED.replace("{}", "{asked}")), asked=asked)
    else:
        Scripted().complete(ROUTED.format(asked))
    if way == "engine":
        engine().query(asked)
    else:
        message = f"Kind: RULES\nMessage: {asked}\n" if way == "form" else asked
        tool = FunctionTool.from_defaults(lambda: PARIS, name="look", description="Looks it up.")
        await FunctionAgent(tools=[tool], llm=Caller(script=[("look", {}), ANSWER])).run(message)
    assert [turn.answer for turn in receiver.records] == [ANSWER]
    assert len(receiver.drafts) == 2


def test_a_call_before_a_run_that_is_asked_something_else_is_what_it_was(receiver: Receiver) -> None:
    Scripted().complete(ROUTED.format("Who is the head?"))
    engine().query(QUESTION)
    assert [turn.question for turn in receiver.records] == ["Who is the head?", QUESTION]


@pytest.mark.parametrize(("said", "is_turn"), [(ANSWER, True), ("It is a place in the north.", False)])
def test_who_goes_on_after_the_answer_of_a_turn_asks_in_the_same_conversation(
    receiver: Receiver, said: str, is_turn: bool
) -> None:
    engine().query(QUESTION)
    history = [ChatMessage(role="user", content=QUESTION), ChatMessage(role="assistant", content=said)]
    more = ChatMessage(role="user", content="Thanks a lot!")
    Scripted(say=lambda _: "You are welcome.").chat([*history, more])
    Scripted(say=lambda _: '{"topic": "thanks"}').chat([*history, more])
    spoken = [(turn.question, texts(turn), turn.answer) for turn in receiver.records[1:]]
    assert spoken == [("Thanks a lot!", [], "You are welcome.")] * is_turn


def test_what_a_rewriter_left_as_it_was_is_the_users_own_words_still(receiver: Receiver) -> None:
    Scripted(say=lambda _: "latest news on old bridges").complete("Rewrite: latest news on old bridges")
    Scripted().complete(f"Context:\n{PARIS}\n\nQuestion: latest news on old bridges")
    assert receiver.record.question == "latest news on old bridges"


@pytest.mark.parametrize(
    ("prompt", "asked"),
    [
        ("Translate this to English, and say nothing else.\n\nGerman: {}", "Wie heißt die Hauptstadt?"),
        ("Make a clear question of it.\nQuery: {}\nClear question:", "capital of france"),
        # Instructions, a statement and an exchange are not what anybody typed for this run.
        ("Which question has this as its answer? {}", ""),
        ("Ask something about this text.\n{}\nQuestion:", ""),
        ("What may be asked next?\n\nUser: {} Is it old?\nAssistant: It is.", ""),
    ],
)
def test_what_a_model_was_given_to_translate_or_to_make_clear_is_what_the_user_asked(
    receiver: Receiver, prompt: str, asked: str
) -> None:
    written = str(Scripted(say=lambda _: QUESTION).complete(prompt.format(asked or PARIS)))
    engine().query(written)
    turn = receiver.record
    assert (turn.question, turn.standalone_question) == ((asked, QUESTION) if asked else (QUESTION, None))
    assert [note.partition(":")[0] for note in turn.notes] == ["question_guessed" if asked else WRITTEN]


@pytest.mark.parametrize("judged", [ANSWER, "It is a town."])
def test_a_form_that_says_if_a_reply_holds_is_no_answer(receiver: Receiver, judged: str) -> None:
    Scripted().complete(f"Context:\n{PARIS}\n\nQuestion: {QUESTION}")
    verdict = '{"holds": true, "risk": "low"}'
    check = f"Context:\n{FRANCE} It is large.\n\nReply:\n{judged}\n\nQuestion: {QUESTION}"
    Scripted(say=lambda _: verdict).complete(check)
    assert [turn.answer for turn in receiver.records] == [ANSWER, verdict][: 1 + (judged != ANSWER)]


def test_a_memory_made_for_one_turn_is_no_conversation(receiver: Receiver) -> None:
    def begin() -> ContextChatEngine:
        memory = Memory.from_defaults()
        return ContextChatEngine.from_defaults(retriever=Fixed(), llm=Scripted(), memory=memory)

    for _ in range(2):
        begin().chat(QUESTION)
    kept = begin()
    for _ in range(3):
        kept.chat(QUESTION)
    sessions = [record.session for record in receiver.records]
    assert sessions[:3] == [None] * 3
    assert sessions[3] is not None
    assert sessions[3] == sessions[4]
