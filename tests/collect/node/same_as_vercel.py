"""`examples/node/vercel.mjs`, in Python: an agent with a tool that searches."""

from __future__ import annotations

from typing import Any

from langchain.agents import create_agent
from langchain_core.tools import tool

from collect.node.chat_model import ChatModel
from collect.node.telemetry import DOCUMENTS, begin


@tool
def search(query: str) -> list[str]:
    """Search the documents."""
    return list(DOCUMENTS.values())


def main() -> None:
    provider = begin()
    agent = create_agent(ChatModel(), [search])
    asked: Any = {"messages": [{"role": "user", "content": "What is the capital of France?"}]}
    print(agent.invoke(asked)["messages"][-1].content)
    provider.shutdown()


if __name__ == "__main__":
    main()
