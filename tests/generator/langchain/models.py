"""A model of LangChain that says what its role says in the present turn."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGenerationChunk, ChatResult
from langchain_core.runnables.config import var_child_runnable_config

from fakes.langchain_models import SpeakingModel
from generator.texts import place
from generator.turns import NOW, TURNS, Turn


def now(manager: Any = None) -> Turn:
    """The turn that this code runs for."""
    if turn := NOW.get():
        return turn
    metadata = getattr(manager, "metadata", None) or (var_child_runnable_config.get() or {}).get("metadata")
    return TURNS[(metadata or {})["turn"]]


def _calls(tool: str, args: dict[str, str], turn: Turn, at: int) -> AIMessage:
    call = {"name": tool, "args": args, "id": f"{turn.id}-{tool}-{at}"}
    return AIMessage("", tool_calls=[{**call, "type": "tool_call"}])


class Speaker(SpeakingModel):
    """Replies as its role does: `answer`, `rewrite`, `queries`, `grade`, `route`, `check`, `agent`, ..."""

    role: str
    tool: str = ""
    hops: int = 1
    notes: str = ""
    """A tool that takes a note before anything is looked up; none if empty."""
    told: int = 0
    """What other tools told before its own."""
    drafts: bool = False
    """Whether the first answer is a draft that is thrown away."""
    terse: bool = False
    """Whether it leaves out the stop behind its answer, as behind words to search for."""
    form: str | None = None
    """The tool whose arguments the answer is said as."""
    structured: str = ""
    """The key under which the answer is said as JSON; plain text if empty."""
    cites: bool = False
    """Whether that JSON has quotes of the passages beside the answer."""

    def reply_to(self, messages: list[BaseMessage], manager: Any) -> AIMessage:
        turn, prompt = now(manager), "\n\n".join(message.text for message in messages)
        if self.role in ("agent", "expert", "searcher"):
            return self._act(turn, messages, prompt)
        said = self._say(turn, prompt)
        if self.role != "answer" or self.form is None:
            return AIMessage(said)
        call = {"name": self.form, "args": {"answer": said, "confidence": "high"}, "id": f"{turn.id}-form"}
        return AIMessage("", tool_calls=[{**call, "type": "tool_call"}])

    def _say(self, turn: Turn, prompt: str) -> str:
        if self.role == "answer":
            return self._answer(turn, prompt)
        if self.role == "relay":
            return self._relay(turn, prompt)
        if self.role == "grade":
            return "yes" if any(place(text, prompt) >= 0 for text in turn.shown) else "no"
        if self.role == "check":
            return "yes" if turn.tries > 1 or not self.drafts else "no"
        if self.role == "judge":
            passed = turn.tries > 1
            reasons = f"It misses rule {turn.id} and its exceptions."
            reasons = f"It says all of rule {turn.id}." if passed else reasons
            return json.dumps({"pass": passed, "reasons": reasons})
        return {
            "rewrite": turn.rewritten,
            "same": turn.question,
            "queries": "\n".join((turn.rewritten, f"{turn.rewritten} again")),
            "plan": json.dumps([turn.rewritten, f"{turn.rewritten} again"]),
            "route": "search",
            "guard": "yes",
            "title": "A short talk",
            "questions": f"1. {turn.rewritten}\n2. {turn.rewritten} And then?",
            "review": "It says too little of the exceptions.",
            "analyse": '{"findings": ["The first of them settles this question."], "severity": "high"}',
            "verify": '{"grounded": true, "score": 9}',
            "score": '{"tone": 3, "reasoning": "It says what was asked.", "completeness": 2}',
        }[self.role]

    def _relay(self, turn: Turn, prompt: str) -> str:
        turn.relayed.append(prompt)
        return f"{turn.draft} ({len(turn.relayed)})"

    def _answer(self, turn: Turn, prompt: str) -> str:
        turn.tries += 1
        if self.drafts and turn.tries == 1:
            return self._formed(turn, turn.draft, prompt)
        turn.prompt = prompt
        if turn.echoes:
            turn.answer = prompt.strip()
        elif self.terse:
            turn.answer = turn.answer.rstrip(".")
        return self._formed(turn, turn.answer, prompt)

    def _formed(self, turn: Turn, said: str, prompt: str) -> str:
        if not self.structured:
            return said
        seen = [text for text in turn.shown if self.cites and place(text, prompt) >= 0]
        quotes = [" ".join(text.split()[:9]) for text in seen]
        cited = [{"number": at, "evidence": text} for at, text in enumerate(quotes)]
        beside = {"citations": cited, "sure": "high"} if self.cites else {}
        return json.dumps({self.structured: said, **beside})

    def _act(self, turn: Turn, messages: list[BaseMessage], prompt: str) -> AIMessage:
        asked = max(at for at, message in enumerate(messages) if message.type == "human")
        looked = sum(message.type == "tool" for message in messages[asked:])
        if self.notes and not looked:
            return _calls(
                self.notes, {"note": f"First look it up, then answer: {turn.rewritten}"}, turn, looked
            )
        looked -= self.told
        if looked >= self.hops and self.role == "searcher":
            return AIMessage("Enough is known now.")
        if looked >= self.hops:
            return AIMessage((self._relay if self.role == "expert" else self._answer)(turn, prompt))
        return _calls(self.tool, {"query": turn.queries[looked]}, turn, looked)

    def pieces(self, text: str) -> list[str]:
        return [text[at : at + 40] for at in range(0, len(text), 40)]

    async def _agenerate(
        self, messages: list[BaseMessage], stop: Any = None, run_manager: Any = None, **kwargs: Any
    ) -> ChatResult:
        await asyncio.sleep(0)  # let the other tenant in
        return self._generate(messages, stop, run_manager)

    async def _astream(
        self, messages: list[BaseMessage], stop: Any = None, run_manager: Any = None, **kwargs: Any
    ) -> AsyncIterator[ChatGenerationChunk]:
        for chunk in self._stream(messages, stop, run_manager):
            yield chunk
            await asyncio.sleep(0)
