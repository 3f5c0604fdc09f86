"""Applications whose parts plain Python calls, and chains of the classic package."""

from __future__ import annotations

import json
from typing import Any

from langchain_classic.chains import ConversationalRetrievalChain, RetrievalQA, create_retrieval_chain
from langchain_classic.chains.combine_documents import create_stuff_documents_chain
from langchain_classic.chains.history_aware_retriever import create_history_aware_retriever
from langchain_core.chat_history import InMemoryChatMessageHistory
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate, MessagesPlaceholder, PromptTemplate
from langchain_core.runnables import Runnable, RunnableLambda, RunnablePassthrough
from langchain_core.runnables.history import RunnableWithMessageHistory

from generator.choices import Choices
from generator.langchain.application import Application, Step, all_found, all_shown, single
from generator.langchain.chains import Input, answer, chain, looked_up, rewriter
from generator.langchain.messages import FORMS, formed, read, spoken, template, written
from generator.langchain.models import Speaker
from generator.langchain.retrievers import retriever, shown, texts
from generator.texts import JOINERS
from generator.turns import Turn


def filled(choices: Choices, turn: Turn, found: str) -> dict[str, Any]:
    """The variables of an answering prompt that plain code fills in."""
    history = choices["history"] if choices["turns"] != "1" else "none"
    past = [] if history in ("none", "stored") else spoken(turn)
    form = history if history in FORMS else "objects"
    return {
        "context": found,
        "question": turn.question,
        "chat_history": read(formed(past, form)),
        "history": written(turn),
    }


def separate(choices: Choices) -> Application:
    """A chain that rewrites and retrieves; then, on its own, a chain that answers."""
    source = Input(choices.replace(input="string"))
    is_state = choices["found_as"] == "state"
    look = (
        {"documents": looked_up(choices), "query": RunnablePassthrough()} if is_state else looked_up(choices)
    )
    apart = choices["planning"] == "apart"
    searching = (RunnablePassthrough() if apart else rewriter(choices, source)) | look
    join = JOINERS[choices["joining"]]

    def found(turn: Turn, docs: Any) -> dict[str, Any]:
        docs = docs["documents"] if is_state else docs
        if isinstance(docs, str):
            return filled(choices, turn, docs if turn.shown else "")
        return filled(choices, turn, turn.came(join(shown(docs, turn))))

    def asked(turn: Turn, said: Any) -> str:
        return str(json.loads(said)[0]) if apart else turn.question

    return Application(
        steps=(
            *((Step(runnable=_planning(), given=lambda turn, _: turn.question),) if apart else ()),
            Step(runnable=searching, given=asked),
            Step(runnable=answer(choices, history=True), given=found),
        ),
    )


def _planning() -> Runnable[Any, str]:
    """A chain that writes queries, for code to search for."""
    told = "Generate 2 search queries for this question. Return only a JSON array of strings.\nQuestion: {}"
    return RunnableLambda(told.format) | Speaker(role="plan") | StrOutputParser()


def parts(choices: Choices) -> Application:
    """A search and a call for each of two parts, with nothing around; then a call joins their replies."""
    steps = [step for part in (slice(0, None, 2), slice(1, None, 2)) for step in _asked_of(part, choices)]

    def joined(turn: Turn, _: Any) -> str:
        replies = "\n".join(f"Part {at}: {turn.draft} ({at})" for at in range(1, len(turn.relayed) + 1))
        return f"Make one answer of these.\n\nQuestion: {turn.question}\n\n{replies}"

    # In a batch the parts of several turns would be asked in one task.
    answering = Step(runnable=Speaker(role="answer"), given=joined)
    return Application(steps=(*steps, answering), batches=False, shows=all_found)


def _asked_of(part: slice, choices: Choices) -> tuple[Step, Step]:
    join = JOINERS[choices["joining"]]

    def prompt(turn: Turn, docs: Any) -> str:
        found = turn.came(join(texts(docs)[part]))
        return f"Answer from this part alone.\n\n{found}\n\nQuestion: {turn.question}"

    look = retriever(choices.replace(retriever="base"))
    return (
        Step(runnable=look, given=lambda turn, _: turn.question),
        Step(runnable=Speaker(role="relay"), given=prompt),
    )


def bare(choices: Choices) -> Application:
    """A look-up that no framework sees, then a chain or a model that is given its text."""
    join = JOINERS[choices["joining"]]

    def found(turn: Turn, _: Any) -> dict[str, Any]:
        return filled(choices, turn, turn.came(join(turn.shown)))

    if choices["prompting"] in ("chat", "string", "messages"):
        return Application(steps=(Step(runnable=answer(choices, history=True), given=found),))
    made = template(choices)
    return Application(
        steps=(
            Step(
                # The application parses the JSON by itself.
                runnable=Speaker(role="answer", structured="answer" * (choices["output"] == "structured")),
                given=lambda turn, _: made.text().format(**found(turn, _)),
            ),
        )
    )


def conversation(choices: Choices) -> Application:
    """A chain in `RunnableWithMessageHistory`."""
    store: dict[str, InMemoryChatMessageHistory] = {}
    key = "question" if choices["input"] in ("string", "messages") else choices["input"]
    choices = choices.replace(input=key, history="objects")
    if choices["output"] in ("docs", "structured", "form", "nested", "revised"):
        choices = choices.replace(output="text")
    source = Input(choices.replace(turns="2"))
    remembering = RunnableWithMessageHistory(
        chain(choices),
        lambda session_id: store.setdefault(session_id, InMemoryChatMessageHistory()),
        input_messages_key=source.key,
        history_messages_key="chat_history",
        output_messages_key="answer" if choices["output"] == "dict" else None,
    )
    return single(remembering, lambda turn: {source.key: turn.question})


def classic(choices: Choices) -> Application:
    """The chains of `langchain_classic`: retrieval, question answering, conversational retrieval."""
    if choices["retriever"] not in ("base", "store", "multi_query", "ensemble", "compression"):
        choices = choices.replace(retriever="base")
    shows = all_shown if choices["retriever"] == "compression" else all_found
    look, text = retriever(choices), template(choices).text()
    model = Speaker(role="answer")
    kind = choices.random("classic").choice(("retrieval", "qa", "conversational"))
    if kind == "qa":
        text = text.replace("{history}", "")
        made = RetrievalQA.from_chain_type(
            model,
            retriever=look,
            chain_type_kwargs={"prompt": PromptTemplate.from_template(text)},
            return_source_documents=choices["output"] == "docs",
        )
        return single(made, lambda turn: {"query": turn.question}, shows=shows)
    if kind == "conversational":
        prompt = PromptTemplate.from_template(text.replace("{history}", ""))
        told = ConversationalRetrievalChain.from_llm(
            model,
            look,
            condense_question_llm=Speaker(role="same" if choices["rewrite"] == "same" else "rewrite"),
            combine_docs_chain_kwargs={"prompt": prompt},
        )
        return single(
            told, lambda turn: {"question": turn.question, "chat_history": list(turn.history)}, shows=shows
        )
    system = text.replace("{question}", "(below)").replace("{history}", "")
    answering = ChatPromptTemplate.from_messages(
        [("system", system), MessagesPlaceholder("chat_history"), ("human", "{input}")]
    )
    asking = ChatPromptTemplate.from_messages(
        [
            ("system", "Make a standalone question of the conversation, or return it as it is."),
            MessagesPlaceholder("chat_history"),
            ("human", "{input}"),
        ]
    )
    role = "same" if choices["rewrite"] == "same" else "rewrite"
    aware = create_history_aware_retriever(Speaker(role=role), look, asking)
    whole = create_retrieval_chain(aware, create_stuff_documents_chain(model, answering))
    history = choices["history"] if choices["turns"] != "1" else "none"
    form = history if history in FORMS and history != "typed" else "objects"
    return single(
        whole,
        lambda turn: {"input": turn.question, "chat_history": formed(spoken(turn), form)},
        shows=shows,
    )
