"""What else is in the traces of applications: judges, guardrails, titles, memories, hedged calls."""

from __future__ import annotations

import json

from apps.otel.attributes import oi, oi_model, oi_retriever, oi_tool
from apps.otel.general.conventions import chat, retrieval
from apps.otel.shapes import (
    ANSWER,
    PASSAGES,
    QUERY,
    QUESTION,
    Gap,
    Shape,
    Trace,
    Turn,
    compact,
    joined,
    prompt,
    shape,
)

_SCOPE = "openinference.instrumentation.openai"
_SERVER = {"http.request.method": "POST"}
_OTHER_ANSWER = "It should be oiled often, about once in 200 km."
_SEVERAL = "of several replies"


def _then(instruction: str, reply: str) -> Trace:
    """A turn below a server's span, and a call after it that is shown the answer."""
    trace = Trace(_SCOPE)
    with trace.span("POST /ask", _SERVER):
        trace.leaf("retrieve", oi_retriever(QUESTION))
        trace.leaf("ChatCompletion", oi_model([("user", prompt())], ANSWER))
        shown = f"User: {QUESTION}\nBot: {ANSWER}"
        trace.leaf("ChatCompletion", oi_model([("system", instruction), ("user", shown)], reply))
    return trace


@shape(Turn(without=_SEVERAL))
def title_of_the_conversation() -> Trace:
    """After the answer a model names the conversation, for a list of conversations."""
    return _then("Write a title of at most five words.", "Oiling the Chain of a Bicycle")


@shape(Turn(without=_SEVERAL))
def name_of_the_conversation() -> Trace:
    """The same, asked for in other words."""
    return _then("Name this chat in five words.", "Oil for touring bicycle chains")


@shape(Turn(without=_SEVERAL))
def memories_of_the_conversation() -> Trace:
    """After the answer a model keeps what it learned of the user."""
    told = "Extract facts about the user worth remembering."
    return _then(told, "The user rides a touring bicycle, and cares for its chain.")


@shape(Turn(one_text=True, without="question_rewritten_only"))
def root_that_was_sampled_out() -> Trace:
    """Only the retriever, asked what a model made of the question, and the model's call were exported."""
    trace = Trace(_SCOPE)
    with trace.span("rag", oi("CHAIN", QUESTION, ANSWER)):
        trace.leaf("retrieve", oi_retriever(QUERY))
        told = [("system", f"Answer from the context.\n\nContext:\n{joined()}"), ("user", QUESTION)]
        trace.leaf("ChatCompletion", oi_model(told, ANSWER))
    trace.spans.pop()
    return trace


@shape(Turn(without=_SEVERAL))
def further_questions_after_the_answer() -> Trace:
    """After the answer a model proposes what the user may ask next."""
    return _then("Suggest two follow-up questions.", "Which oil is the best one?\nHow is a chain cleaned?")


@shape(Turn(without=_SEVERAL))
def check_of_the_answer_in_prose() -> Trace:
    """After the answer a guardrail says in a sentence whether it keeps to the passages."""
    return _then("Say whether the reply is grounded in the passages.", "Yes, the passages say all of that.")


@shape(Turn(answer=_OTHER_ANSWER, note=_SEVERAL))
def revision_of_the_answer() -> Trace:
    """A last call is shown the draft and makes the answer anew, although it speaks of a title."""
    return _then("Rewrite the draft in the tone of our book, whose title is Wheels.", _OTHER_ANSWER)


@shape(Turn(answer=_OTHER_ANSWER, note=_SEVERAL))
def hedged_calls_without_an_output() -> Trace:
    """Two models are asked the same at once, and no span says whose reply the user was given."""
    trace = Trace(_SCOPE)
    with trace.span("POST /ask", _SERVER):
        trace.leaf("retrieve", oi_retriever(QUESTION))
        for reply in (ANSWER, _OTHER_ANSWER):
            trace.leaf("ChatCompletion", oi_model([("user", prompt())], reply))
    return trace


@shape(Turn(contexts=PASSAGES[:2]))
def grader_before_a_second_search() -> Trace:
    """The first prompt is a grader's, with words of its own behind the question."""
    trace = Trace(_SCOPE)
    with trace.span("POST /ask", _SERVER):
        trace.leaf("retrieve", oi_retriever(QUESTION, PASSAGES[2:]))
        graded = f"Is this relevant? {PASSAGES[2]} Question: {QUESTION} Answer yes or no"
        trace.leaf("ChatCompletion", oi_model([("user", graded)], "no"))
        trace.leaf("ChatCompletion", oi_model([("user", f"Rewrite for a search: {QUESTION}")], QUERY))
        trace.leaf("retrieve", oi_retriever(QUERY, PASSAGES[:2]))
        trace.leaf("ChatCompletion", oi_model([("user", prompt(QUESTION, PASSAGES[:2]))], ANSWER))
    return trace


@shape(Turn(note=_SEVERAL))
def parts_without_a_span_that_asks() -> Trace:
    """The application's own part questions are answered; only the last prompt has the user's question."""
    parts = (
        ("How often is a chain oiled?", "A chain needs oil every 200 km, it says."),
        ("What does rain do to a chain?", "After rain it has to be dried and oiled."),
    )
    trace = Trace("my.service")
    with trace.span("POST /ask", _SERVER):
        for question, answer in parts:
            trace.leaf("retrieval manuals", retrieval(question))
            trace.leaf("chat small-model", chat(prompt(question), answer))
        shown = "\n".join(answer for _, answer in parts)
        trace.leaf("chat small-model", chat(f"Combine:\n{shown}\n\nQuestion: {QUESTION}", ANSWER))
    return trace


_MEMORY = "The user rides a touring bicycle in Italy every summer."


@shape(Turn(contexts=(_MEMORY, *PASSAGES)))
def memories_beside_a_tool() -> Trace:
    """A retriever brings what is remembered of the user, a tool what answers the question."""
    trace = Trace("openinference.instrumentation.agno")
    with trace.span("Agent.run", oi("AGENT", QUESTION, ANSWER)):
        trace.leaf("memory.search", oi_retriever(QUESTION, (_MEMORY,)))
        trace.leaf("search_manual", oi_tool("search_manual", list(PASSAGES)))
        said = [("system", f"You know of the user:\n{_MEMORY}"), ("user", QUESTION), ("assistant", "")]
        trace.leaf("invoke", oi_model([*said, ("tool", compact(PASSAGES))], ANSWER))
    return trace


@shape(Turn(one_text=True, note="contexts_guessed"))
def example_in_the_instructions() -> Trace:
    """The instructions show an example with a context of its own; the real one stands beside the question."""
    example = "Answer from the context. An example:\nContext: Rome lies in Italy.\nQuestion: Where is Rome?"
    trace = Trace(_SCOPE)
    trace.leaf("ChatCompletion", oi_model([("system", example), ("user", prompt())], ANSWER))
    return trace


@shape(Turn(one_text=True, contexts=PASSAGES[:2], note="contexts_guessed"))
def earlier_questions_with_their_contexts() -> Trace:
    """A conversation in which each message of the user has the passages for it in front."""
    before = [
        ("user", prompt("How high is a saddle?", PASSAGES[2:])),
        ("assistant", "As high as the heel says."),
    ]
    trace = Trace(_SCOPE)
    trace.leaf("ChatCompletion", oi_model([*before, ("user", prompt(QUESTION, PASSAGES[:2]))], ANSWER))
    return trace


@shape(Gap(cause="helper_call", switch="an evaluator makes it"))
def evaluation_in_a_trace_of_its_own() -> Trace:
    """An evaluation's rows go in with question, passages and answer, and come out as scores."""
    row = {"user_input": QUESTION, "retrieved_contexts": list(PASSAGES), "response": ANSWER}
    verdict = {"verdicts": [{"statement": "The chain needs oil.", "reason": "It says so.", "verdict": 1}]}
    trace = Trace("openinference.instrumentation.langchain")
    rows = trace.span("evaluation", oi("CHAIN", row, {"faithfulness": 1.0}))
    with rows, trace.span("faithfulness", oi("CHAIN", row, "1.0")):
        asked = prompt("Which statements do they support?")
        trace.leaf("ChatModel", oi_model([("user", asked)], compact(verdict)))
    return trace


_ROWS = "\n".join(json.dumps({"reference_id": str(at), "content": text}) for at, text in enumerate(PASSAGES))
_ENTITY = json.dumps(
    {"entity": "Chain", "type": "part", "description": "A part of the bicycle that needs care."}
)
_GRAPH = f"""Answer the query from the **Context** alone. Reference section example:
```
- [1] Title of a document
```

---Context---

Knowledge Graph Data (Entity):

```json
{_ENTITY}
```

Document Chunks (each entry has a reference_id):

```json
{_ROWS}
```
"""


@shape(
    Turn(contexts=("- [1] Title of a document", _ENTITY, *PASSAGES), note="contexts_guessed"),
)
def knowledge_graph_in_the_prompt() -> Trace:
    """Entities and chunks stand as lines of JSON between fences in the instructions, and nowhere else."""
    trace = Trace(_SCOPE)
    trace.leaf("ChatCompletion", oi_model([("system", _GRAPH), ("user", QUESTION)], ANSWER))
    return trace


@shape(Turn(contexts=("A text of some words here.",), note="contexts_guessed"))
def form_between_fences() -> Trace:
    """A model is told the form of its reply by an example between fences, and nothing was retrieved."""
    form = 'Reply as in this example of a document:\n\n```json\n{"text": "A text of some words here."}\n```'
    trace = Trace(_SCOPE)
    trace.leaf("ChatCompletion", oi_model([("system", form), ("user", QUESTION)], ANSWER))
    return trace


@shape(Turn(without=_SEVERAL))
def three_judges_in_the_trace() -> Trace:
    """Three calls give the answer a score and a reason after it was given."""
    return _then("You judge how helpful the answer is. Give a score and a reason.", "Score: 5. It is short.")


@shape(Turn(without=_SEVERAL))
def questions_that_might_be_asked_next() -> Trace:
    """A call suggests what the user might ask next, in words of its own."""
    return _then("Suggest three questions the user might ask next.", '["Which oil?", "In winter too?"]')


@shape(Turn(without=_SEVERAL))
def politeness_of_the_reply() -> Trace:
    """A call says in a word of its own whether the reply is polite."""
    return _then("Is this reply polite? Answer with one word.", "polite")


@shape(Gap(cause="no_retrieval", switch="not a RAG turn"))
def hit_in_a_semantic_cache() -> Trace:
    """A cache finds an earlier question like this one and hands its answer out; neither is a passage."""
    trace = Trace(_SCOPE)
    with trace.span("rag", oi("CHAIN", "How often do I oil a chain?", ANSWER)):
        trace.leaf("semantic_cache.search", oi_retriever("How often do I oil a chain?", (QUESTION,)))
    return trace


@shape(Turn(one_text=True, note="contexts_guessed"))
def draft_and_revision_below_a_server() -> Trace:
    """A second call is shown the passages again, and what the first one replied to the same question."""
    trace = Trace(_SCOPE)
    with trace.span("POST /ask", _SERVER):
        trace.leaf("ChatCompletion", oi_model([("user", prompt())], _OTHER_ANSWER))
        shown = f"{prompt()}\n\nDraft:\n{_OTHER_ANSWER}"
        trace.leaf("ChatCompletion", oi_model([("system", "Revise the draft."), ("user", shown)], ANSWER))
    return trace


@shape(Turn(contexts=(), note="no_documents"))
def retriever_that_tells_addresses() -> Trace:
    """A retriever's span tells where passages are from and how many, and no span has a text of theirs."""
    trace = Trace(_SCOPE)
    with trace.span("chat", oi("CHAIN", QUESTION, ANSWER)):
        trace.leaf("find", {**oi("RETRIEVER", QUESTION), "urls": ["https://a.example/1"], "count": 1})
        trace.leaf("write", oi("LLM", None, ANSWER))
    return trace


@shape(Turn(contexts=(), note="no_retrieval"))
def numbers_of_the_look_up_alone() -> Trace:
    """Own spans tell counts of what was found; the search's query was written by a model beside them."""
    trace = Trace(_SCOPE)
    with trace.span("POST /ask", _SERVER):
        rewrite = [("system", "Write a search query. Output only the query."), ("user", QUESTION)]
        trace.leaf("ChatCompletion", oi_model(rewrite, QUERY))
        trace.leaf("docs.retrieve", {"docs.found": 2}, scope="app")
        trace.leaf("ChatCompletion", oi_model([("system", "Be brief."), ("user", QUESTION)], ANSWER))
    return trace


@shape(Turn(one_text=True, contexts=PASSAGES[:2]))
def graph_resumed_by_a_word() -> Trace:
    """A graph that waited for a person is resumed in a trace of its own: the person's word is no question."""
    trace = Trace("openinference.instrumentation.langchain")
    with trace.span("LangGraph", oi("CHAIN", {"resume": "approved"}, ANSWER)):
        asked = [("user", QUESTION), ("tool", joined(PASSAGES[:2]))]
        trace.leaf("ChatModel", oi_model(asked, ANSWER))
    return trace


_GERMAN = ("Die Kette braucht alle 200 km Öl.", "Nach Regen wird sie getrocknet und neu geölt.")
_CHINESE = ("自行车链条每骑行两百公里需要上油一次。", "雨天骑行之后要擦干链条并重新上油。")


@shape(
    Turn(
        one_text=True,
        question="Wie oft braucht die Kette Öl?",
        contexts=_GERMAN,
        answer="Alle 200 km, und nach Regen.",
        note="contexts_guessed",
    )
)
def german_prompt() -> Trace:
    """The heading of the passages and the label of the question are German; only the prompt tells of them."""
    trace = Trace(_SCOPE)
    asked = "Frage: Wie oft braucht die Kette Öl?\nAntwort:"
    text = f"Antworte nur daraus.\n\nKontext:\n{joined(_GERMAN)}\n\n{asked}"
    trace.leaf("ChatCompletion", oi_model([("user", text)], "Alle 200 km, und nach Regen."))
    return trace


@shape(
    Turn(
        one_text=True,
        question="链条多久需要上一次油？",
        contexts=_CHINESE,
        answer="每两百公里一次，雨天之后也要。",
        note="contexts_guessed",
    )
)
def chinese_prompt() -> Trace:
    """The same in Chinese, with the colons that are written there."""
    trace = Trace(_SCOPE)
    text = f"请根据资料回答问题。\n\n参考资料：\n{joined(_CHINESE)}\n\n问题：链条多久需要上一次油？"
    trace.leaf("ChatCompletion", oi_model([("user", text)], "每两百公里一次，雨天之后也要。"))
    return trace


@shape(Turn(one_text=True, note="contexts_guessed"))
def own_search_span_with_names_of_sources() -> Trace:
    """The span of a search tells which files it found, and not what stands there: names are no passages."""
    trace = Trace("app")
    sources = "\n\n".join(f"[{n}] care-{n}.md\n{text}" for n, text in enumerate(PASSAGES, 1))
    asked = [("system", f"Answer from the sources.\n\nSources:\n{sources}"), ("user", QUESTION)]
    with trace.span("POST /ask", _SERVER):
        names = [f"care-{n}.md" for n in range(1, len(PASSAGES) + 1)]
        trace.leaf("rag.hybrid_search", {"rag.query": QUESTION, "rag.sources": names, "rag.k": 3})
        trace.leaf("ChatCompletion", oi_model(asked, ANSWER), scope=_SCOPE)
    return trace


SHAPES: tuple[Shape, ...] = tuple(value for value in list(globals().values()) if isinstance(value, Shape))
