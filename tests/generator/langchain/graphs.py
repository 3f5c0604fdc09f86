"""Graphs of LangGraph: nodes that guard, rewrite, route, retrieve, generate, check, add something."""

from __future__ import annotations

import json
import operator
from typing import Annotated, Any, TypedDict

from langchain_core.messages import BaseMessage, SystemMessage
from langchain_core.runnables import RunnableLambda
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, StateGraph
from langgraph.graph.message import add_messages

from generator.choices import Choices
from generator.langchain.application import Application, all_shown, last_shown, single
from generator.langchain.chains import Input, answer, cited, context, looked_up, rewriter, variables
from generator.langchain.models import Speaker, now
from generator.langchain.retrievers import texts
from generator.turns import Turn


def graph(choices: Choices) -> Application:
    """A state graph."""
    nodes = Nodes(choices)
    built: Any = StateGraph(nodes.state())
    order = ["rewrite", "retrieve", "generate"]
    first = START
    if nodes.fetches:
        first = "fetch"
        built.add_node("fetch", nodes.fetch)
        built.add_edge(START, "fetch")
    if choices["routing"] == "yes":
        built.add_node("route", nodes.route)
        built.add_edge(first, "route")
        built.add_conditional_edges("route", lambda _: "rewrite", ["rewrite"])
    else:
        built.add_edge(first, "rewrite")
    for name in order:
        built.add_node(name, getattr(nodes, name))
    built.add_edge("rewrite", "retrieve")
    built.add_edge("retrieve", "generate")
    loop = choices["loop"]
    end = END
    # Under no known name nothing tells suggestions without a question mark from an answer.
    if choices["after"] != "no" and not (nodes.cites and choices["after"] == "questions"):
        end = "after"
        built.add_node("after", nodes.after)
        built.add_edge("after", END)
    if loop == "no":
        built.add_edge("generate", end)
    else:
        back = "generate" if loop == "redraft" else "retrieve"
        last = "generate"
        if nodes.judges:
            last = "judge"
            built.add_node("judge", nodes.judge)
            built.add_edge("generate", "judge")
            if choices["judging"] == "reasons":
                end = "report"
                built.add_node("report", nodes.report)
                built.add_edge("report", END)
        built.add_conditional_edges(last, nodes.checked, {"no": back, "yes": end})
    saver = InMemorySaver() if nodes.remembers else None
    again = loop == "again"
    return single(
        built.compile(checkpointer=saver),
        nodes.given,
        hops=2 if again else 1,
        shows=last_shown if again else all_shown,
    )


AFTER = "Write what the user may want to see beside this answer."


class Nodes:
    """The nodes of a graph, over a state of fields or of messages."""

    def __init__(self, choices: Choices) -> None:
        self.choices = choices
        self.speaks = choices["graph_state"] == "messages"
        self.remembers = choices["history"] == "stored" and choices["thread"] == "yes"
        self.keeps = choices["graph_state"] == "exchanges" and choices["history"] == "stored"
        self.keeps = self.keeps and self.remembers
        if self.speaks:
            form = {"typed": "dicts"}.get(choices["history"], choices["history"])
            choices = choices.replace(input="messages", history=form)
        elif choices["input"] in ("string", "messages"):
            choices = choices.replace(input="question")
        self.source = Input(choices)
        again = choices["loop"] != "no"
        # Nodes write a message or a text; how they come by it is theirs.
        plain = choices.replace(output="message" if self.speaks else "text")
        self.cites = choices["graph_state"] == "cited"
        self.forms = choices["output"] == "form" and choices["graph_state"] == "fields"
        self.forms = self.forms and not again and choices["after"] == "no"
        plain = choices if self.forms else plain
        made = cited(choices, drafts=again) if self.cites else answer(plain, history=True, drafts=again)
        self.judges = (
            again and not (self.speaks or self.cites or self.remembers) and choices["judging"] != "words"
        )
        # Where nothing is left to be shown no model is asked, and code answers.
        self.refuses = choices["refusing"] == "code" and not (
            again or self.speaks or self.cites or self.forms
        )
        self.refuses = self.refuses and choices["row"] == "no"
        self.fetches = choices["opening"] == "fetched" and choices["history"] in ("none", "stored")
        self.fetches = self.fetches and not self.speaks
        self.answering = made
        self.rewriting, self.looking = rewriter(choices, self.source), looked_up(choices)
        self.writing, self.filling = context(choices), variables(self.source)

    def state(self) -> Any:
        fields: dict[str, Any] = {
            "query": str,
            "documents": list,
            "chat_history": Any,
            "tries": int,
            "extra": str,
            "account": dict,
        }
        if self.speaks:
            fields["messages"] = Annotated[list[BaseMessage], add_messages]
        else:
            fields |= {self.source.key: str, "generation": str}
        if self.forms:
            fields["decision"] = Any
        if self.cites:
            fields |= {"synthesis": str, "citations": list, "analysis": dict}
        if self.judges:
            fields |= {"critique": str, "judgements": Annotated[list[dict[str, Any]], operator.add]}
        if self.keeps:
            fields["turns"] = Annotated[list[dict[str, str]], operator.add]
        return TypedDict("State", fields, total=False)  # type: ignore[operator]

    def given(self, turn: Turn) -> Any:
        return {"tries": 0} if self.fetches else self.source.given(turn)

    def fetch(self, state: Any) -> Any:
        """What was asked, out of an inbox."""
        return {self.source.key: now().question, "account": {"sender": "clerk@example.org"}}

    def route(self, state: Any) -> Any:
        asked = self.source.question(state)
        if self.choices["guard"] == "yes":
            Speaker(role="guard").invoke(f"Is this safe to answer? Reply yes or no.\n{asked}")
        where = Speaker(role="route").invoke(f"Where to?\n{asked}")
        return {"tries": 0} if where.text else {}

    def rewrite(self, state: Any) -> Any:
        return {"query": self.rewriting.invoke(state)}

    def retrieve(self, state: Any) -> Any:
        turn = now()
        query = turn.queries[-1] if turn.tries else state["query"]
        found = {"documents": self.collected(self.looking.invoke(query))}
        return found | {"account": self.account(turn)} if self.choices["row"] == "yes" else found

    def collected(self, found: Any) -> Any:
        """What was found; where a step cleans it, as texts, with signs and then without."""
        if self.choices["collecting"] != "cleaned" or isinstance(found, str):
            return found
        read = texts(found)
        raw: Any = RunnableLambda(lambda _: [f"* # {text.replace('. ', '. *** ')}" for text in read])
        clean: Any = RunnableLambda(lambda dirty: read if dirty else [])
        return (raw | clean).invoke(found)

    def noted(self, context: str, state: Any) -> str:
        """What a model makes of what was found, put into the list of it, which steps before returned."""
        is_list = isinstance(state["documents"], list) and self.choices["loop"] == "no"
        if self.choices["collecting"] != "in_place" or not is_list:
            return ""
        note = Speaker(role="relay").invoke(f"What do these tell?\n\n{context}").text
        state["documents"].append(note)
        return f"\n\n{note}"

    def account(self, turn: Turn) -> dict[str, Any]:
        """A row of short values, which no retriever brings."""
        chance = self.choices.random("row", turn.id)
        number, since = chance.randint(10**5, 10**6), chance.randint(1990, 2020)
        made = {"customer": f"C{number}", "plan": "family", "devices": number % 7, "since": since}
        if (str(made),) not in turn.found:
            turn.found += ((str(made),),)
        return made

    def generate(self, state: Any) -> Any:
        if self.refuses and not now().shown:
            now().prompt = now().answer
            return {"generation": now().answer, "documents": []}
        filled = {**self.filling.invoke(state), "context": self.writing.invoke(state["documents"])}
        filled["context"] += self.noted(filled["context"], state)
        if self.choices["asking"] == "words" and now().shown:
            filled["question"] = now().shown[0][:15].partition("\n")[0].strip()
        if self.choices["row"] == "yes":
            filled["context"] = f"{state['account']}\n\n{filled['context']}"
        if self.keeps:
            filled["history"] = "\n".join(f"{one['asked']}\n{one['told']}" for one in state.get("turns", []))
        if self.cites:
            found = Speaker(role="analyse").invoke(f"What do these tell?\n\n{filled['context']}")
            analysis = json.loads(found.text)
            filled["context"] += f"\n\n## Analysis\n{json.dumps(analysis, indent=2)}"
        said = self.answering.invoke(filled)
        if self.cites:
            return {"synthesis": said["synthesis"], "citations": said["citations"], "analysis": analysis}
        if self.forms:
            return {"decision": said}
        if self.keeps:
            return {"generation": said, "turns": [{"asked": self.source.question(state), "told": said}]}
        return {"messages": [self.spoken(said)]} if self.speaks else {"generation": said}

    def spoken(self, said: BaseMessage) -> Any:
        """The answer as a node puts it among the messages: as it is, as a system's, or as bare words."""
        # Bare words are the user's, and a second try would ask the first one's.
        is_able = self.choices["loop"] == "no" and not self.remembers
        how = self.choices["saying"] if is_able else "model"
        return {"model": said, "system": SystemMessage(said.text), "words": said.text}[how]

    def said(self, state: Any) -> str:
        """The answer in the state."""
        kept = state["messages"][-1].text if self.speaks else state.get("generation")
        return str(state["synthesis"] if self.cites else kept)

    def after(self, state: Any) -> Any:
        """A title, questions to ask next, or a grade of the answer, which are not the answer."""
        said = self.said(state)
        asked = self.source.question(state)
        return {"extra": Speaker(role=self.choices["after"]).invoke(f"{asked}\n\n{said}\n\n{AFTER}").text}

    def judge(self, state: Any) -> Any:
        """What a model thinks of the answer: a verdict with reasons, or a critique that is kept."""
        said, turn = self.said(state), now()
        if self.choices["judging"] == "critique":
            return {"critique": Speaker(role="review").invoke(f"What does it lack?\n\n{said}").text}
        found = self.writing.invoke(state["documents"])
        told = Speaker(role="judge").invoke(f"Judge this answer.\n\n{said}\n\nContext: {found}").text
        return {"judgements": [json.loads(told)], "tries": turn.tries}

    def report(self, state: Any) -> Any:
        """The answer with the reasons of the judge below it, as it is shown."""
        log = "\n".join(f"- {one['pass']}: {one['reasons']}" for one in state["judgements"])
        now().answer = f"{self.said(state)}\n\n### Log\n{log}"
        return {"generation": now().answer}

    def checked(self, state: Any) -> str:
        if self.judges and self.choices["judging"] == "reasons":
            return "yes" if state["judgements"][-1]["pass"] else "no"
        if self.judges:
            return "yes" if now().tries > 1 else "no"
        said = self.said(state)
        return Speaker(role="check", drafts=True).invoke(f"Is this grounded?\n\n{said}\n\nyes or no").text
