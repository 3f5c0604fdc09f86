"""Models of LlamaIndex that say what their role says in the present turn: one completes, one chats."""

from __future__ import annotations

import json
from collections.abc import Sequence

from llama_index.core.base.llms.types import ChatMessage, ChatResponse, MessageRole

from fakes.llamaindex_models import ChatModel, CompletionModel, replied
from generator.texts import place
from generator.turns import NOW, Turn

_CONDENSING = "standalone question"


def now() -> Turn:
    """The turn that this code runs for."""
    turn = NOW.get()
    if turn is None:
        raise LookupError("no turn runs here")
    return turn


def say(role: str, prompt: str) -> str:
    """What a model of a role says to a prompt."""
    turn = now()
    if _CONDENSING in prompt and role == "answer":
        return turn.rewritten
    if role == "relay":
        turn.relayed.append(prompt)
        return turn.draft
    if role == "tried":
        turn.relayed.append(prompt)
        return f"{turn.draft} (1)"
    if role == "rewrite":
        return turn.rewritten
    if role == "route":
        return "INTENT: RULES\nREASON: It asks for a rule."
    if role == "outline":
        return (
            '{"steps": [{"text": "Find the rule", "tool": "dir"}, {"text": "Read it aloud", "tool": "type"}]}'
        )
    if role in ("answer", "accumulate"):
        return _answer(turn, prompt, keep=role == "accumulate")
    if role == "grade":
        return "yes" if any(place(text, prompt) >= 0 for text in turn.shown) else "no"
    return {"queries": f"{turn.rewritten}\nand more", "pick": '[{"choice": 1, "reason": "It fits."}]'}[role]


def _answer(turn: Turn, prompt: str, keep: bool) -> str:
    if keep and turn.prompt:
        turn.relayed.append(turn.prompt)
    turn.prompt = prompt
    turn.tries += 1
    if keep:
        return f"{turn.draft} ({turn.tries})"
    return prompt.strip() if turn.echoes else turn.answer


class Completes(CompletionModel):
    """A completion model."""

    role: str = "answer"

    def says(self, prompt: str) -> str:
        return say(self.role, prompt)


class Chats(ChatModel):
    """A chat model; as an agent's it calls a tool for each hop, then answers."""

    role: str = "answer"
    tool: str = ""
    argument: str = "query"
    """What its argument is called."""
    hops: int = 0

    def replies(self, messages: Sequence[ChatMessage]) -> ChatResponse:
        turn, prompt = now(), "\n\n".join(str(message.content or "") for message in messages)
        asked = max((at for at, m in enumerate(messages) if m.role == MessageRole.USER), default=0)
        looked = sum(message.role == MessageRole.TOOL for message in messages[asked:])
        if looked < self.hops:
            return replied("", [(self.tool, {self.argument: turn.queries[looked]})])
        return replied(say(self.role, prompt))


class Picks(ChatModel):
    """A chat model that fills in the form of a selector."""

    def replies(self, messages: Sequence[ChatMessage]) -> ChatResponse:
        return replied("", [("SingleSelection", {"index": 1, "reason": "It fits the question best."})])


class Reasons(Chats):
    """A chat model that thinks, acts and answers in lines of text, as a ReAct agent reads them."""

    def replies(self, messages: Sequence[ChatMessage]) -> ChatResponse:
        turn, prompt = now(), "\n\n".join(str(message.content or "") for message in messages)
        asked = max(at for at, m in enumerate(messages) if str(m.content) == turn.question)
        looked = sum(str(message.content).startswith("Observation:") for message in messages[asked + 1 :])
        if looked < self.hops:
            arguments = json.dumps({self.argument: turn.queries[looked]})
            text = f"Thought: I need a tool.\nAction: {self.tool}\nAction Input: {arguments}"
        else:
            text = f"Thought: I can answer now.\nAnswer: {say(self.role, prompt)}"
        return replied(text)
