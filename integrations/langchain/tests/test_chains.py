"""One right record from every kind of chain, all of them the framework's own."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from dirty_equals import IsFloat
from langchain_classic.retrievers import (
    ContextualCompressionRetriever,
    EnsembleRetriever,
    MultiQueryRetriever,
)
from langchain_classic.retrievers.document_compressors import DocumentCompressorPipeline
from langchain_core.chat_history import InMemoryChatMessageHistory
from langchain_core.documents import Document
from langchain_core.language_models.fake import FakeListLLM
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate, MessagesPlaceholder
from langchain_core.runnables import (
    RunnableLambda,
    RunnableParallel,
    RunnablePassthrough,
    RunnableWithMessageHistory,
)
from langchain_parts import (
    BERLIN,
    FRANCE,
    PARIS,
    PROMPT,
    QUESTION,
    SEINE,
    Broken,
    Receiver,
    Shelf,
    joined,
    lcel,
    says,
    texts,
)

from steelyard.record import Context
from steelyard_langchain import CallbackHandler

THREE = [PARIS.page_content, FRANCE.page_content, BERLIN.page_content]


def test_a_chain_that_writes_into_its_input_changes_no_question(receiver: Receiver, config: Any) -> None:
    def takes_out(given: dict[str, Any]) -> str:
        question: str = given.pop("question")
        given["question"] = "What is something else?"
        return question

    (RunnableLambda(takes_out) | lcel()).invoke({"question": QUESTION}, config)
    assert receiver.record.question == QUESTION
    assert texts(receiver.record.contexts) == THREE


def test_a_chain_that_changes_what_it_found_changes_no_record(receiver: Receiver, config: Any) -> None:
    def taken_out(found: list[Document]) -> str:
        return "\n\n".join(found.pop(0).page_content for _ in range(len(found)))

    chain = {"context": Shelf() | RunnableLambda(taken_out), "question": RunnablePassthrough()} | PROMPT
    (chain | says("Paris is the capital.") | StrOutputParser()).invoke(QUESTION, config)
    assert texts(receiver.record.contexts) == THREE
    assert [one.score for one in receiver.record.contexts] == [0.91, 0.55, 0.31]


def test_lcel_with_a_string(receiver: Receiver, config: Any) -> None:
    lcel().invoke(QUESTION, config)
    record = receiver.record
    assert record.question == QUESTION
    assert record.answer == "Paris is the capital."
    assert record.status == "ok"
    assert record.contexts[0] == Context(text=PARIS.page_content, id="d1", score=0.91, rank=0, seen=1.0)
    assert texts(record.contexts) == THREE
    assert record.contexts_source == "in_prompt"
    assert record.retrieved == ()
    assert record.notes == ()
    assert record.trace is not None
    assert record.trace.framework == "langchain"
    assert record.trace.run_id == record.id
    assert record.timings is not None
    assert record.timings.total == IsFloat(gt=0)
    assert record.timings.retrieval == IsFloat(gt=0, lt=record.timings.total or 0)
    assert record.timings.generation == IsFloat(gt=0, lt=record.timings.total or 0)


@pytest.mark.parametrize(
    "messages",
    [
        [SystemMessage("Be brief."), HumanMessage("Hello"), AIMessage("Hi"), HumanMessage(QUESTION)],
        [("system", "Be brief."), ("user", "Hello"), ("assistant", "Hi"), ("user", QUESTION)],
        [{"role": "user", "content": "Hello"}, {"role": "user", "content": QUESTION}],
        [HumanMessage([{"type": "text", "text": QUESTION}, {"type": "image_url", "image_url": "x"}])],
    ],
)
def test_lcel_with_messages(receiver: Receiver, config: Any, messages: Any) -> None:
    model = says("Paris.")
    chain = RunnableLambda(lambda given: given["messages"]) | model
    chain.invoke({"messages": messages}, config)
    (RunnableLambda(lambda given: given) | model).invoke(messages, config)
    assert [record.question for record in receiver.records] == [QUESTION, QUESTION]
    assert [record.answer for record in receiver.records] == ["Paris.", "Paris."]


def test_a_rewritten_query_outside_a_conversation_is_no_question(receiver: Receiver, config: Any) -> None:
    rewrite = ChatPromptTemplate.from_template("Keywords of: {question}") | says("capital France")
    retriever = {"question": RunnablePassthrough()} | rewrite | StrOutputParser() | Shelf()
    lcel(retriever=retriever).invoke(QUESTION, config)
    record = receiver.record
    assert record.question == record.asked == QUESTION
    assert record.contexts[0].query == "capital France"


def test_multi_query_retriever_is_one_retrieval(receiver: Receiver, config: Any) -> None:
    inner = Shelf(by_word={"seat": [PARIS, SEINE], "city": [BERLIN]})
    retriever = MultiQueryRetriever.from_llm(inner, says("Which city?\nWhich seat of government?"))
    lcel(retriever=retriever).invoke(QUESTION, config)
    record = receiver.record
    assert texts(record.contexts) == [BERLIN.page_content, PARIS.page_content, SEINE.page_content]
    assert {context.hop for context in record.contexts} == {0}
    assert sorted(stage.query for stage in record.stages) == ["Which city?", "Which seat of government?"]
    assert record.standalone_question is None


def test_ensemble_retriever_keeps_its_parts_as_stages(receiver: Receiver, config: Any) -> None:
    parts: list[Any] = [Shelf(documents=[PARIS, FRANCE]), Shelf(documents=[BERLIN, PARIS])]
    retriever = EnsembleRetriever(retrievers=parts, weights=[0.5, 0.5])
    lcel(retriever=retriever).invoke(QUESTION, config)
    record = receiver.record
    assert texts(record.contexts) == [PARIS.page_content, BERLIN.page_content, FRANCE.page_content]
    assert [texts(stage.contexts) for stage in record.stages] == [
        [PARIS.page_content, FRANCE.page_content],
        [BERLIN.page_content, PARIS.page_content],
    ]


def test_contextual_compression_scores_what_is_left(receiver: Receiver, config: Any) -> None:
    class Best(DocumentCompressorPipeline):
        def compress_documents(self, documents: Any, query: str, callbacks: Any = None) -> Any:
            return documents[:1]

    retriever = ContextualCompressionRetriever(base_compressor=Best(transformers=[]), base_retriever=Shelf())
    lcel(retriever=retriever).invoke(QUESTION, config)
    record = receiver.record
    assert texts(record.contexts) == [PARIS.page_content]
    assert record.retrieved == ()
    assert [(stage.name, texts(stage.contexts)) for stage in record.stages] == [("Shelf", THREE)]


def test_parallel_retrievers_are_joined_without_duplicates(receiver: Receiver, config: Any) -> None:
    both = RunnableParallel(a=Shelf(documents=[PARIS, SEINE]), b=Shelf(documents=[BERLIN, PARIS]))
    lcel(retriever=both | (lambda found: found["a"] + found["b"])).invoke(QUESTION, config)
    record = receiver.record
    assert set(texts(record.contexts)) == {PARIS.page_content, SEINE.page_content, BERLIN.page_content}
    assert len(record.contexts) == 3
    assert {context.hop for context in record.contexts} == {0, 1}
    assert record.standalone_question is None


def test_a_rerank_in_a_lambda_shows_by_the_prompt(receiver: Receiver, config: Any) -> None:
    lcel(retriever=Shelf() | (lambda documents: [documents[2]])).invoke(QUESTION, config)
    record = receiver.record
    assert texts(record.contexts) == [BERLIN.page_content]
    assert record.contexts_source == "in_prompt"
    assert [(c.text, c.in_prompt) for c in record.retrieved] == list(
        zip(THREE, [False, False, True], strict=True)
    )


def test_documents_sorted_in_place_keep_the_retrievers_order(receiver: Receiver, config: Any) -> None:
    def spoil(documents: list[Document]) -> list[Document]:
        kept = list(documents)
        documents.clear()
        return kept

    lcel(retriever=Shelf() | spoil).invoke(QUESTION, config)
    assert texts(receiver.record.contexts) == THREE


def test_a_grader_does_not_count_as_having_seen_the_documents_for_the_answer(
    receiver: Receiver, config: Any
) -> None:
    grader = ChatPromptTemplate.from_template("{page}\nIs it relevant, yes or no?") | says("yes", "no", "no")

    def graded(documents: list[Document]) -> list[Document]:
        return [d for d in documents if grader.invoke({"page": d.page_content}).content == "yes"]

    lcel(retriever=Shelf() | graded).invoke(QUESTION, config)
    record = receiver.record
    assert texts(record.contexts) == [PARIS.page_content]
    assert texts(record.retrieved) == THREE


def test_a_grader_whose_yes_stands_in_the_answer(receiver: Receiver, config: Any) -> None:
    grader = ChatPromptTemplate.from_template("{page}\nIs it relevant, yes or no?") | says("no", "yes", "no")

    def graded(documents: list[Document]) -> list[Document]:
        return [d for d in documents if grader.invoke({"page": d.page_content}).content == "yes"]

    model = says("By now I can say yes, and there is no doubt.")
    (lcel(model, Shelf() | graded) | (lambda answer: f"{answer} [2]")).invoke(QUESTION, config)
    assert texts(receiver.record.contexts) == [FRANCE.page_content]


def test_a_check_after_the_answer_does_not_hide_what_it_came_from(receiver: Receiver, config: Any) -> None:
    check = ChatPromptTemplate.from_template("Is this polite? {answer}") | says("It is polite.")

    def checked(answer: str) -> str:
        check.invoke({"answer": answer})
        return answer.upper()

    (lcel(retriever=Shelf() | (lambda found: found[:1])) | checked).invoke(QUESTION, config)
    assert receiver.record.answer == "PARIS IS THE CAPITAL."
    assert texts(receiver.record.contexts) == [PARIS.page_content]


def test_fallback_answers(receiver: Receiver, config: Any) -> None:
    model = says(TimeoutError("slow")).with_fallbacks([says("Paris, says the other one.")])
    lcel(model).invoke(QUESTION, config)
    record = receiver.record
    assert (record.status, record.answer) == ("ok", "Paris, says the other one.")
    assert any("error" in note for note in record.notes)


def test_retry_answers(receiver: Receiver, config: Any) -> None:
    model = says(TimeoutError("slow"), "Paris.").with_retry(wait_exponential_jitter=False)
    lcel(model).invoke(QUESTION, config)
    assert (receiver.record.status, receiver.record.answer) == ("ok", "Paris.")
    assert receiver.record.tags == ()


def test_completion_models(receiver: Receiver, config: Any) -> None:
    lcel(FakeListLLM(responses=["Paris."])).invoke(QUESTION, config)
    assert receiver.record.answer == "Paris."
    assert receiver.record.contexts_source == "in_prompt"


@pytest.mark.parametrize("asynchronous", [False, True])
def test_batch_is_one_record_per_input(receiver: Receiver, config: Any, asynchronous: bool) -> None:
    questions = [f"Question {n}?" for n in range(5)]
    chain = lcel(RunnableLambda(lambda prompt: "Answer to " + prompt.to_string().rsplit(" ", 1)[1]))
    if asynchronous:
        asyncio.run(chain.abatch(questions, config))
    else:
        chain.batch(questions, config)
    found = {record.question: record.answer for record in receiver.records}
    assert found == {f"Question {n}?": f"Answer to {n}?" for n in range(5)}


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_message_history(receiver: Receiver, config: Any) -> None:
    history = InMemoryChatMessageHistory(messages=[HumanMessage("Hello"), AIMessage("Hi")])
    prompt = ChatPromptTemplate.from_messages(
        [("system", "{context}"), MessagesPlaceholder("history"), ("user", "{question}")]
    )
    chain = RunnablePassthrough.assign(context=lambda given: joined(Shelf().invoke(given["question"])))
    remembering = RunnableWithMessageHistory(
        chain | prompt | says("Paris."),
        lambda: history,
        input_messages_key="question",
        history_messages_key="history",
        history_factory_config=[],
    )
    remembering.invoke({"question": QUESTION}, config)
    record = receiver.record
    assert (record.question, record.answer) == (QUESTION, "Paris.")
    assert texts(record.contexts) == THREE


def test_no_retrieval_is_a_turn_without_contexts(receiver: Receiver, config: Any) -> None:
    (ChatPromptTemplate.from_template("{question}") | says("Paris.")).invoke({"question": QUESTION}, config)
    record = receiver.record
    assert (record.question, record.answer, record.contexts) == (QUESTION, "Paris.", ())


def test_a_chain_without_a_model_is_no_turn(receiver: Receiver, config: Any) -> None:
    (Shelf() | joined).invoke(QUESTION, config)
    RunnableLambda(str.upper).invoke(QUESTION, config)
    assert receiver.records == []


def test_a_model_called_past_the_framework(receiver: Receiver, config: Any) -> None:
    (Shelf() | joined | (lambda context: "Paris, by a client of our own")).invoke(QUESTION, config)
    record = receiver.record
    assert record.answer == "Paris, by a client of our own"
    assert texts(record.contexts) == THREE
    assert record.contexts_source == "retrieved"
    assert record.notes == ("no model run was seen in this turn",)


def test_a_model_or_retriever_on_its_own_is_not_a_turn(receiver: Receiver, config: Any) -> None:
    Shelf().invoke(QUESTION, config)
    says("Hello.").invoke(QUESTION, config)
    assert receiver.records == []


def test_retriever_error(receiver: Receiver, config: Any) -> None:
    with pytest.raises(ConnectionError):
        lcel(retriever=Broken()).invoke(QUESTION, config)
    record = receiver.record
    assert (record.status, record.error) == ("error", "ConnectionError: no route to the index")
    assert (record.question, record.answer) == (QUESTION, "")


def test_model_error(receiver: Receiver, config: Any) -> None:
    with pytest.raises(ValueError, match="overloaded"):
        lcel(says(ValueError("overloaded"))).invoke(QUESTION, config)
    record = receiver.record
    assert (record.status, record.error) == ("error", "ValueError: overloaded")
    assert texts(record.contexts) == THREE


def test_tags_metadata_and_run_name_are_carried_and_noise_is_not(receiver: Receiver, config: Any) -> None:
    more: Any = {"tags": ["prod"], "metadata": {"user": "u1", "thread_id": "t1"}, "run_name": "answerer"}
    lcel().invoke(QUESTION, config | more)
    record = receiver.record
    assert record.tags == ("prod",)
    assert record.metadata == {"user": "u1", "thread_id": "t1", "run_name": "answerer"}


def test_two_handlers_each_record(receiver: Receiver) -> None:
    other = Receiver()
    lcel().invoke(QUESTION, {"callbacks": [CallbackHandler(receiver), CallbackHandler(other)]})
    assert receiver.record.question == other.record.question == QUESTION


def test_a_handler_bound_to_a_part_records_that_part(receiver: Receiver, config: Any) -> None:
    inner = lcel().with_config(callbacks=config["callbacks"])
    (RunnableLambda(lambda given: given["deep"]) | inner).invoke({"deep": QUESTION})
    assert receiver.record.question == QUESTION
