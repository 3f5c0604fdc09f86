"""Conversations: a model condenses a follow-up question, with what went before it, into one of its own."""

from __future__ import annotations

from typing import Any

from langchain_classic.chains import (
    ConversationalRetrievalChain,
    create_history_aware_retriever,
    create_retrieval_chain,
)
from langchain_classic.chains.combine_documents import create_stuff_documents_chain
from langchain_core.chat_history import InMemoryChatMessageHistory
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate, MessagesPlaceholder
from langchain_core.runnables import RunnableBranch, RunnablePassthrough, RunnableWithMessageHistory

from apps.app import BOTH, Truth, script
from apps.island import FARES, FERRY, PRICE, PRICE_ANSWER, SUNDAY, SUNDAY_ANSWER
from apps.langchain.pieces import joined, model, prompt, shelf

FOLLOW_UP = "And with a dog?"
THREAD = (
    Truth(question=SUNDAY, contexts=(FERRY,), answer=SUNDAY_ANSWER),
    Truth(question=FOLLOW_UP, contexts=(FARES,), answer=PRICE_ANSWER, standalone=PRICE),
)


@script(*THREAD, ways=BOTH)
async def conversational_chain(config: Any, way: str) -> list[str]:
    """`ConversationalRetrievalChain`: a model condenses the follow-up into a question of its own."""
    speaks = model(("Follow Up", PRICE), ("Grown-ups", PRICE_ANSWER), otherwise=SUNDAY_ANSWER)
    made = ConversationalRetrievalChain.from_llm(speaks, shelf(FERRY, by_word={"dog": [FARES]}))
    shown: list[str] = []
    for at, question in enumerate((SUNDAY, FOLLOW_UP)):
        given = {"question": question, "chat_history": [(SUNDAY, shown[0])] if at else []}
        result = await made.ainvoke(given, config) if way == "ainvoke" else made.invoke(given, config)
        shown.append(result["answer"])
    return shown


@script(*THREAD, ways=BOTH)
async def history_aware_chain(config: Any, way: str) -> list[str]:
    """`create_history_aware_retriever` and `RunnableWithMessageHistory`."""
    condense = ChatPromptTemplate.from_messages(
        [MessagesPlaceholder("chat_history"), ("human", "Rewrite: {input}")]
    )
    retriever = create_history_aware_retriever(
        model(otherwise=PRICE), shelf(FERRY, by_word={"dog": [FARES]}), condense
    )
    answer = create_stuff_documents_chain(
        model(("Grown-ups", PRICE_ANSWER), otherwise=SUNDAY_ANSWER),
        ChatPromptTemplate.from_messages(
            [("system", "Use:\n{context}"), MessagesPlaceholder("chat_history"), ("human", "{input}")]
        ),
    )
    history = InMemoryChatMessageHistory()
    made = RunnableWithMessageHistory(
        create_retrieval_chain(retriever, answer),
        lambda session_id: history,
        input_messages_key="input",
        history_messages_key="chat_history",
        output_messages_key="answer",
    )
    session: Any = {**config, "configurable": {"session_id": "1"}}
    shown = []
    for question in (SUNDAY, FOLLOW_UP):
        given = {"input": question}
        result = await made.ainvoke(given, session) if way == "ainvoke" else made.invoke(given, session)
        shown.append(result["answer"])
    return shown


@script(*THREAD, ways=BOTH)
async def chat_loop_with_a_branch(config: Any, way: str) -> list[str]:
    """A chat product's chain: with a history a branch condenses, without one it does not."""
    condense = (
        prompt("History: {chat_history}\nFollow up: {question}\nStandalone:")
        | model(otherwise=PRICE)
        | StrOutputParser()
    )
    query = RunnableBranch(
        (lambda given: bool(given["chat_history"]), condense), lambda given: given["question"]
    )
    template = ChatPromptTemplate.from_messages(
        [("system", "Use:\n{context}"), ("placeholder", "{chat_history}"), ("human", "{question}")]
    )
    made = (
        RunnablePassthrough.assign(context=query | shelf(FERRY, by_word={"dog": [FARES]}) | joined)
        | template
        | model(("Grown-ups", PRICE_ANSWER), otherwise=SUNDAY_ANSWER)
        | StrOutputParser()
    )
    history: list[Any] = []
    shown = []
    for question in (SUNDAY, FOLLOW_UP):
        given = {"question": question, "chat_history": list(history)}
        text = await made.ainvoke(given, config) if way == "ainvoke" else made.invoke(given, config)
        history += [HumanMessage(question), AIMessage(text)]
        shown.append(text)
    return shown
