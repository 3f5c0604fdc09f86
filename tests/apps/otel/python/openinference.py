"""Chains, graphs, workflows and managed services under OpenInference."""

from __future__ import annotations

import json
from collections.abc import Sequence

from apps.otel.attributes import oi, oi_documents, oi_model, oi_retriever, oi_tool
from apps.otel.shapes import ANSWER, PASSAGES, QUERY, QUESTION, Shape, Trace, Turn, joined, prompt, shape

_SCOPE = "openinference.instrumentation."


def _grade(trace: Trace, passage: str, verdict: str) -> None:
    """A grader that looks at one document."""
    ask = f"Is this document relevant?\n\nDocument:\n{passage}\n\nUser question: {QUESTION}"
    trace.leaf("ChatModel", oi_model([("user", ask)], json.dumps({"binary_score": verdict})))


@shape(Turn(contexts=PASSAGES[:1]))
def graph_that_grades_its_documents() -> Trace:
    """A self-reflective graph: only one of three graded documents is let into the answer's prompt."""
    trace = Trace(_SCOPE + "langchain")
    with trace.span(
        "LangGraph", oi("CHAIN", {"question": QUESTION}, {"generation": ANSWER, "question": QUESTION})
    ):
        trace.leaf("Retriever", oi_retriever(QUESTION))
        with trace.span("grade_documents", oi("CHAIN")):
            for passage, verdict in zip(PASSAGES, ("yes", "no", "no"), strict=True):
                _grade(trace, passage, verdict)
        with trace.span("generate", oi("CHAIN")):
            trace.leaf("ChatModel", oi_model([("user", prompt(passages=PASSAGES[:1]))], ANSWER))
        with trace.span("check", oi("CHAIN")):
            ask = f"Is the answer grounded?\n\nFacts:\n{joined()}\n\nAnswer: {ANSWER}"
            trace.leaf("ChatModel", oi_model([("user", ask)], json.dumps({"binary_score": "yes"})))
    return trace


@shape(Turn())
def graph_whose_root_tells_no_answer() -> Trace:
    """The answer is in no output of the graph: the grader that spoke last must not be taken for it."""
    trace = Trace(_SCOPE + "langchain")
    with trace.span("LangGraph", oi("CHAIN", {"question": QUESTION}, {"steps": ["generate", "check"]})):
        trace.leaf("Retriever", oi_retriever(QUESTION))
        trace.leaf("ChatModel", oi_model([("user", prompt())], ANSWER))
        ask = f"Does the answer address the question?\n\nQuestion: {QUESTION}\n\nAnswer: {ANSWER}"
        trace.leaf("ChatModel", oi_model([("user", ask)], json.dumps({"binary_score": "yes"})))
    return trace


@shape(Turn())
def graph_that_rewrites_and_retries() -> Trace:
    """The first retrieval is rejected, the question rewritten, and a second retrieval answers."""
    trace = Trace(_SCOPE + "langchain")
    with trace.span(
        "LangGraph", oi("CHAIN", {"question": QUESTION}, {"question": QUERY, "generation": ANSWER})
    ):
        trace.leaf("Retriever", oi_retriever(QUESTION, ["Tyres are pumped to four bar."]))
        _grade(trace, "Tyres are pumped to four bar.", "no")
        trace.leaf("ChatModel", oi_model([("user", f"Write a better query for: {QUESTION}")], QUERY))
        trace.leaf("Retriever", oi_retriever(QUERY))
        trace.leaf("ChatModel", oi_model([("user", prompt())], ANSWER))
    return trace


@shape(Turn(contexts=(PASSAGES[0], PASSAGES[1])))
def graph_that_adds_a_web_page() -> Trace:
    """Corrective RAG: one document stays, a page found by a web search tool joins it in the prompt."""
    trace = Trace(_SCOPE + "langchain")
    page = {"url": "https://example.org", "content": PASSAGES[1]}
    with trace.span("LangGraph", oi("CHAIN", {"question": QUESTION}, {"generation": ANSWER})):
        trace.leaf("Retriever", oi_retriever(QUESTION, (PASSAGES[0], PASSAGES[2])))
        _grade(trace, PASSAGES[0], "yes")
        _grade(trace, PASSAGES[2], "no")
        trace.leaf("web_search", oi("TOOL", {"query": QUERY}, [page], tool__name="web_search"))
        trace.leaf("ChatModel", oi_model([("user", prompt(passages=PASSAGES[:2]))], ANSWER))
    return trace


@shape(Turn())
def chain_that_is_given_its_documents() -> Trace:
    """A chain over documents: they stand in its input, beside a question of its own name and a history."""
    trace = Trace(_SCOPE + "langchain")
    documents = [
        {"id": f"d{at}", "metadata": {"source": f"{at}.pdf"}, "page_content": text, "type": "Document"}
        for at, text in enumerate(PASSAGES)
    ]
    history = "Human: Is it raining?\nAI: No."
    given = {"input_documents": documents, "human_input": QUESTION, "chat_history": history}
    with trace.span("StuffDocumentsChain", oi("CHAIN", given, ANSWER)):
        trace.leaf("ChatModel", oi_model([("user", prompt())], ANSWER))
    return trace


@shape(Turn(contexts=(PASSAGES[1],)))
def rerank_by_a_model() -> Trace:
    """A model picks one passage by number from a numbered list; the answer's prompt holds that one alone."""
    trace = Trace(_SCOPE + "langchain")
    numbered = "\n\n".join(f"[{n}] {text}" for n, text in enumerate(PASSAGES, 1))
    with trace.span("chain", oi("CHAIN", QUESTION, ANSWER)):
        trace.leaf("Retriever", oi_retriever(QUESTION))
        trace.leaf("ChatModel", oi_model([("user", f"Rank by relevance to {QUESTION}\n\n{numbered}")], "[2]"))
        trace.leaf("ChatModel", oi_model([("user", prompt(passages=PASSAGES[1:2]))], ANSWER))
    return trace


@shape(Turn(contexts=(PASSAGES[1], PASSAGES[0])))
def reranker_span() -> Trace:
    """A RERANKER span keeps two documents in another order."""
    kept = (PASSAGES[1], PASSAGES[0])
    trace = Trace(_SCOPE + "langchain")
    with trace.span("chain", oi("CHAIN", QUESTION, ANSWER)):
        trace.leaf("Retriever", oi_retriever(QUESTION))
        told = {
            **oi_documents(prefix="reranker.input_documents"),
            **oi_documents(kept, "reranker.output_documents"),
        }
        trace.leaf("Reranker", {**oi("RERANKER", reranker__query=QUESTION), **told})
        trace.leaf("ChatModel", oi_model([("user", prompt(passages=kept))], ANSWER))
    return trace


@shape(Turn(contexts=(PASSAGES[2], PASSAGES[1], PASSAGES[0])))
def passages_reordered_in_the_prompt() -> Trace:
    """The prompt holds the passages in another order than the retriever returned them."""
    trace = Trace(_SCOPE + "langchain")
    with trace.span("chain", oi("CHAIN", QUESTION, ANSWER)):
        trace.leaf("Retriever", oi_retriever(QUESTION))
        trace.leaf("ChatModel", oi_model([("user", prompt(passages=PASSAGES[::-1]))], ANSWER))
    return trace


_LINES = (
    "Chains\nOil them every 200 km.",
    'A "dry" chain squeaks.',
    "Rain washes the oil off: dry & oil again.",
)


def _chain(sent: str, passages: Sequence[str]) -> Trace:
    trace = Trace(_SCOPE + "langchain")
    with trace.span("chain", oi("CHAIN", QUESTION, ANSWER)):
        trace.leaf("Retriever", oi_retriever(QUESTION, passages))
        trace.leaf("ChatModel", oi_model([("user", f"Context: {sent}\n\nQuestion: {QUESTION}")], ANSWER))
    return trace


@shape(Turn(contexts=_LINES))
def documents_as_python_shows_them() -> Trace:
    """A list of Documents formatted into the prompt: newlines and quotes are escaped."""
    shown = ", ".join(f"Document(metadata={{'source': 'a.md'}}, page_content={text!r})" for text in _LINES)
    return _chain(f"[{shown}]", _LINES)


@shape(Turn(contexts=_LINES))
def documents_as_json() -> Trace:
    """Documents dumped as JSON into the prompt."""
    return _chain(json.dumps([{"content": text} for text in _LINES]), _LINES)


@shape(Turn(contexts=_LINES))
def documents_as_xml() -> Trace:
    """Documents between tags, with entities for what XML reserves."""
    escaped = [t.replace("&", "&amp;").replace('"', "&quot;") for t in _LINES]
    return _chain(
        "\n".join(f'<document index="{n}">\n{t}\n</document>' for n, t in enumerate(escaped)), _LINES
    )


@shape(Turn())
def invented_passage_before_the_search() -> Trace:
    """HyDE: an invented passage is what the retriever is asked; it is no form of the question."""
    invented = "A specialist oils a chain once a year with graphite."
    trace = Trace(_SCOPE + "langchain")
    with trace.span("RunnableSequence", oi("CHAIN", {"question": QUESTION}, ANSWER)):
        trace.leaf("ChatModel", oi_model([("user", f"Write a passage that answers: {QUESTION}")], invented))
        trace.leaf("Retriever", oi_retriever(invented))
        trace.leaf("ChatModel", oi_model([("user", prompt())], ANSWER))
    return trace


@shape(Turn())
def questions_in_several_wordings() -> Trace:
    """Multi-query: three wordings search, each finds a part, the user's question is answered."""
    trace = Trace(_SCOPE + "langchain")
    with trace.span("chain", oi("CHAIN", {"input": QUESTION}, {"answer": ANSWER})):
        trace.leaf(
            "ChatModel", oi_model([("user", f"Write three wordings of: {QUESTION}")], f"{QUERY}\nB\nC")
        )
        for wording, passage in zip((QUERY, "oil after rain", "saddle height"), PASSAGES, strict=True):
            trace.leaf("Retriever", oi_retriever(wording, [passage]))
        trace.leaf("ChatModel", oi_model([("user", prompt())], ANSWER))
    return trace


@shape(Turn())
def llamaindex_sub_questions() -> Trace:
    """A sub-question engine: each part has a question and an answer of its own, the root has the user's."""
    trace = Trace(_SCOPE + "llama_index")
    parts = (
        (QUERY, PASSAGES[:2], "Every 200 km."),
        ("How high is a saddle?", PASSAGES[2:], "Heel on the pedal."),
    )
    with trace.span("SubQuestionQueryEngine.query", oi("CHAIN", QUESTION, ANSWER)):
        trace.leaf("LLM.predict", oi_model([("user", f"Split into sub-questions: {QUESTION}")], "[...]"))
        for asked, found, said in parts:
            with trace.span("RetrieverQueryEngine.query", oi("CHAIN", asked, said)):
                trace.leaf("Retriever.retrieve", oi_retriever(asked, found))
                trace.leaf("LLM.predict", oi_model([("user", prompt(asked, found))], said))
        pairs = "\n\n".join(f"Sub question: {asked}\nResponse: {said}" for asked, _, said in parts)
        trace.leaf("LLM.predict", oi_model([("user", f"Context:\n{pairs}\n\nQuery: {QUESTION}")], ANSWER))
    return trace


def _workflow(given: object) -> Trace:
    trace = Trace(_SCOPE + "llama_index")
    with trace.span("Flow.run", oi("CHAIN", given, f"StopEvent(result={ANSWER!r})")):
        with trace.span(
            "Flow.retrieve", oi("CHAIN", {"ev": "StartEvent()"}, "Found(nodes=[NodeWithScore(...")
        ):
            trace.leaf("Retriever.aretrieve", oi_retriever(QUESTION))
        with trace.span(
            "Flow.answer", oi("CHAIN", {"ev": "Found(nodes=[...])"}, f"StopEvent(result={ANSWER!r})")
        ):
            trace.leaf("LLM.acomplete", oi_model([("user", prompt())], ANSWER))
    return trace


@shape(Turn())
def llamaindex_workflow_with_its_index() -> Trace:
    """run(query=..., index=...): the serialised index holds other texts, none of which is the question."""
    docs = {"d9": {"id_": "d9", "text": "Tyres are pumped to four bar."}}
    index = {"index_struct": {"nodes_dict": {"d9": "d9"}}, "docstore": {"docs": docs}, "text": "Tyres."}
    return _workflow({"ctx": None, "kwargs": {"index": index, "query": QUESTION}})


@shape(Turn())
def llamaindex_workflow_that_tells_its_state() -> Trace:
    """Today's form: the root tells its state and `StartEvent()`, so only the search tells the question."""
    steps = {"retrieve": {"accepted_events": ["<StartEvent() -> None>"], "num_workers": 4}}
    state = {"is_running": False, "config": {"steps": steps, "timeout": 45.0}, "text": "Tyres."}
    return _workflow({"init_state": state, "start_event": "StartEvent()", "tags": {}})


@shape(Turn())
def dspy_module() -> Trace:
    """A DSPy module: fields in and out, a prompt with marked fields and passages in guillemets."""
    trace = Trace(_SCOPE + "dspy")
    fields = {"context": list(PASSAGES), "question": QUESTION}
    out = {"reasoning": "The first passage says so.", "response": ANSWER}
    shown = "\n".join(f"[{n}] «{text}»" for n, text in enumerate(PASSAGES, 1))
    asked = f"[[ ## context ## ]]\n{shown}\n\n[[ ## question ## ]]\n{QUESTION}\n\nRespond with the fields."
    said = "\n\n".join(f"[[ ## {name} ## ]]\n{text}" for name, text in out.items())
    with trace.span("RAG.forward", oi("CHAIN", {"question": QUESTION}, out)):
        trace.leaf("Retrieve.forward", oi_retriever(QUESTION))
        adapter = oi("CHAIN", {"lm": "<LM>", "lm_kwargs": {}}, [out])
        step = trace.span("ChainOfThought.forward", oi("CHAIN", fields, out))
        with step, trace.span("ChatAdapter.__call__", adapter):
            sent = [("system", "Fields: context, question."), ("user", asked)]
            trace.leaf("LM.__call__", oi_model(sent, said))
    return trace


@shape(Turn())
def dspy_module_with_a_search_of_its_own() -> Trace:
    """No retriever span: the passages are an input field of the predictor."""
    trace = Trace(_SCOPE + "dspy")
    fields = {"context": list(PASSAGES), "question": QUESTION}
    shown = "\n".join(f"[{n}] «{text}»" for n, text in enumerate(PASSAGES, 1))
    asked = f"[[ ## context ## ]]\n{shown}\n\n[[ ## question ## ]]\n{QUESTION}\n\nRespond with the fields."
    module = trace.span("RAG.forward", oi("CHAIN", {"question": QUESTION}, {"response": ANSWER}))
    with module, trace.span("Predict.forward", oi("CHAIN", fields, {"response": ANSWER})):
        trace.leaf("LM.__call__", oi_model([("user", asked)], f"[[ ## response ## ]]\n{ANSWER}"))
    return trace


@shape(Turn())
def bedrock_retrieve_and_generate() -> Trace:
    """One RETRIEVER span retrieves and answers; no model call is told."""
    trace = Trace(_SCOPE + "bedrock")
    trace.leaf("bedrock.retrieve_and_generate", {**oi("RETRIEVER", QUESTION, ANSWER), **oi_documents()})
    return trace


@shape(Turn())
def langchain_js_sequence() -> Trace:
    """LangChain.js: messages in its serialised form, documents as `pageContent`."""
    trace = Trace("@arizeai/openinference-instrumentation-langchain")
    documents = [{"pageContent": text, "metadata": {"source": "manual.md"}} for text in PASSAGES]
    human = {"lc": 1, "type": "constructor", "id": ["langchain_core", "messages", "HumanMessage"]}
    sent = {"messages": [[{**human, "kwargs": {"content": prompt()}}]]}
    with trace.span("RunnableSequence", oi("CHAIN", {"input": QUESTION}, {"output": ANSWER})):
        trace.leaf("VectorStoreRetriever", oi("RETRIEVER", {"query": QUESTION}, {"documents": documents}))
        trace.leaf("ChatOpenAI", {**oi_model([("user", prompt())], ANSWER), "input.value": json.dumps(sent)})
    return trace


@shape(Turn())
def passages_fetched_by_a_plain_function() -> Trace:
    """No framework: a function marked as a chain returns texts, and a model answers."""
    trace = Trace("my.app")
    with trace.span("ask", oi("CHAIN", QUESTION, ANSWER)):
        trace.leaf("search", oi("CHAIN", {"query": QUESTION}, list(PASSAGES)))
        trace.leaf(
            "ChatCompletion", oi_model([("system", f"Context:\n{joined()}"), ("user", QUESTION)], ANSWER)
        )
    return trace


@shape(Turn(), Turn(question="How high is a saddle?", contexts=PASSAGES[2:], answer="Heel on the pedal."))
def two_questions_in_one_request() -> Trace:
    """A batch: two turns below one server span."""
    trace = Trace(_SCOPE + "langchain")
    with trace.span("POST /batch", {"http.request.method": "POST"}, scope="fastapi"):
        for question, found, said in (
            (QUESTION, PASSAGES, ANSWER),
            ("How high is a saddle?", PASSAGES[2:], "Heel on the pedal."),
        ):
            with trace.span("chain", oi("CHAIN", question, said)):
                trace.leaf("Retriever", oi_retriever(question, found))
                trace.leaf("ChatModel", oi_model([("user", prompt(question, found))], said))
    return trace


@shape(Turn(without="contexts_guessed"))
def retriever_that_returns_what_a_vector_store_does() -> Trace:
    """The output is what Chroma returns: a list of documents for each query, beside ids and distances."""
    found = {"ids": [["a", "b", "c"]], "documents": [list(PASSAGES)], "distances": [[0.1, 0.2, 0.3]]}
    trace = Trace("openinference.instrumentation")
    with trace.span("chain", oi("CHAIN", QUESTION, ANSWER)):
        trace.leaf("search", oi("RETRIEVER", {"query_texts": [QUESTION]}, found))
        trace.leaf("ChatCompletion", oi_model([("user", prompt())], ANSWER))
    return trace


@shape(Turn(without="contexts_guessed"))
def decorated_functions() -> Trace:
    """Functions under `@tracer.chain` and a span by hand of the kind RETRIEVER, whose output is texts."""
    trace = Trace("my.service")
    with trace.span("answer", oi("CHAIN", QUESTION, ANSWER)):
        trace.leaf("look_up", oi("RETRIEVER", QUESTION, list(PASSAGES)))
        trace.leaf("ChatCompletion", oi_model([("user", prompt())], ANSWER), scope=_SCOPE + "openai")
    return trace


@shape(Turn())
def decorated_functions_of_one_kind() -> Trace:
    """Every function under `@tracer.chain`, the one that retrieves too; the model's span has plain values."""
    trace = Trace("my.service")
    with trace.span("answer", oi("CHAIN", {"question": QUESTION}, ANSWER)):
        trace.leaf("retrieve", oi("CHAIN", {"query": QUESTION}, list(PASSAGES)))
        trace.leaf("generate", oi("LLM", prompt(), ANSWER))
    return trace


def _headed(passage: str, number: int) -> str:
    """A node's text as LlamaIndex shows it to a model: below its metadata."""
    fields = (
        f"page_label: {number}\nfile_path: /manuals/bicycles/touring_{number}.pdf\ntitle: Touring bicycles"
    )
    return f"{fields}\n\n{passage}"


@shape(Turn())
def llamaindex_nodes_below_their_metadata() -> Trace:
    """The prompt shows each node's metadata above its text, and so do the synthesizer's chunks."""
    shown = [_headed(passage, number) for number, passage in enumerate(PASSAGES)]
    trace = Trace(_SCOPE + "llama_index")
    with trace.span("RetrieverQueryEngine.query", oi("CHAIN", QUESTION, ANSWER)):
        trace.leaf("VectorIndexRetriever.retrieve", oi_retriever(QUESTION))
        with trace.span("CompactAndRefine.synthesize", oi("CHAIN", {"text_chunks": shown}, ANSWER)):
            trace.leaf("OpenAI.chat", oi_model([("user", prompt(passages=shown))], ANSWER))
    return trace


@shape(Turn())
def llamaindex_chat_engine_whose_sources_are_shown_as_objects() -> Trace:
    """The engine's output holds what its retriever returned, shown as Python objects in a text."""
    fields = "{'page_label': '3', 'file_path': '/manuals/bicycles/touring.pdf', 'title': 'Touring bicycles'}"
    nodes = ", ".join(
        f"NodeWithScore(node=TextNode(id_='n{number}', embedding=None, metadata={fields}, "
        f"text={_headed(text, 3)!r}), score=0.5)"
        for number, text in enumerate(PASSAGES)
    )
    shown = f"ToolOutput(blocks=[TextBlock(block_type='text', text={f'[{nodes}]'!r})], tool_name='retriever')"
    came = {"response": ANSWER, "sources": [shown]}
    trace = Trace(_SCOPE + "llama_index")
    with trace.span("ContextChatEngine.chat", oi("CHAIN", QUESTION, came)):
        trace.leaf("VectorIndexRetriever.retrieve", oi_retriever(QUESTION))
        trace.leaf(
            "OpenAI.chat",
            oi_model([("user", prompt(passages=[_headed(text, 3) for text in PASSAGES]))], ANSWER),
        )
    return trace


@shape(Turn(one_text=True, without="no_prompt_seen"))
def function_that_lays_out_what_code_gave_it() -> Trace:
    """A function that is a tool by its decorator; code called it with rows, and a prompt holds its text."""
    rows = [{"topic": f"Topic {n}", "rule": text} for n, text in enumerate(PASSAGES)]
    laid_out = "\n".join(f"{row['topic']}: {row['rule']}" for row in rows)
    trace = Trace("my.service")
    with trace.span("answer", oi("CHAIN", {"query": QUESTION}, ANSWER)):
        trace.leaf("route", oi_model([("user", f"Is this about bicycles? {QUESTION}")], "yes"))
        trace.leaf("lay_out", oi_tool("lay_out", laid_out, {"rows": rows}))
        trace.leaf(
            "chat", oi_model([("user", f"Answer from these rules.\n{laid_out}\n\n{QUESTION}")], ANSWER)
        )
    return trace


@shape(Turn(without="guessed"))
def retriever_with_documents_as_one_json() -> Trace:
    """By hand: the documents are one attribute; their fields have the names that they would have apart."""
    found = [{"document.content": text, "document.id": f"d{n}"} for n, text in enumerate(PASSAGES)]
    trace = Trace("by.hand")
    with trace.span("ask", oi("CHAIN", QUESTION, ANSWER)):
        trace.leaf("fuse", {**oi("RETRIEVER", QUESTION), "retrieval.documents": json.dumps(found)})
        trace.leaf("ChatCompletion", oi_model([("user", prompt())], ANSWER))
    return trace


@shape(Turn(without="guessed"))
def retriever_with_texts_under_a_name_of_its_own() -> Trace:
    """By hand: a mapping from part of the question to its texts, under a name that says nothing."""
    found = {f"part {n}": {"text_chunks": [text], "images": []} for n, text in enumerate(PASSAGES)}
    trace = Trace("by.hand")
    with trace.span("ask", oi("CHAIN", QUESTION, ANSWER)):
        trace.leaf("find", {**oi("RETRIEVER"), "retriever.queries": json.dumps(found)})
        trace.leaf("ChatCompletion", oi_model([("user", prompt())], ANSWER))
    return trace


@shape(Turn(one_text=True, note="contexts_guessed"))
def answer_made_of_answers_to_parts() -> Trace:
    """Only the calls that answered a part of the question were shown passages, filled in by plain code."""
    halves = (PASSAGES[:2], PASSAGES[2:])
    replies = ("The chain needs oil every 200 km and after rain.", "The heel has to reach the pedal.")
    trace = Trace("by.hand")
    with trace.span("ask", oi("CHAIN", QUESTION, ANSWER)):
        for half, reply in zip(halves, replies, strict=True):
            trace.leaf("ChatCompletion", oi_model([("user", prompt(QUESTION, half))], reply))
        last = f"Combine these.\n\nQuestion: {QUESTION}\n\n" + "\n".join(replies)
        trace.leaf("ChatCompletion", oi_model([("user", last)], ANSWER))
    return trace


SHAPES: tuple[Shape, ...] = tuple(value for value in list(globals().values()) if isinstance(value, Shape))
