"""A streaming FastAPI application whose answers are scored after they were sent.

Serve it with `uvicorn langchain_fastapi:app`; run as a script it asks itself one question and sends feedback.
Runs offline, with a fake model.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any
from uuid import UUID, uuid4

from fastapi import FastAPI
from fastapi.responses import StreamingResponse
from langchain_core.documents import Document
from langchain_core.language_models.fake_chat_models import FakeListChatModel
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import RunnablePassthrough

from steelyard import Monitor
from steelyard_langchain import attach, detach, feedback


class Shelf(BaseRetriever):
    """Stands for your vector store's retriever."""

    def _get_relevant_documents(self, query: str, *, run_manager: Any) -> list[Document]:
        return [Document(page_content="Paris is the capital of France.")]


chain = (
    {"context": Shelf() | (lambda found: found[0].page_content), "question": RunnablePassthrough()}
    | ChatPromptTemplate.from_template("Context: {context}\nQuestion: {question}")
    | FakeListChatModel(responses=["Paris is the capital of France."])
    | StrOutputParser()
)
monitor = Monitor()


@asynccontextmanager
async def lifespan(_: FastAPI) -> AsyncIterator[None]:
    """Record every chain while the application is up."""
    attach(monitor)
    yield
    detach()
    monitor.close()


app = FastAPI(lifespan=lifespan)


@app.get("/ask")
async def ask(question: str) -> StreamingResponse:
    """Stream an answer; its id goes along, so that the client can rate it."""
    run_id = uuid4()
    pieces = chain.astream(question, {"run_id": run_id})
    return StreamingResponse(pieces, media_type="text/plain", headers={"x-run-id": str(run_id)})


@app.post("/rate/{run_id}")
def rate(run_id: UUID, stars: int) -> dict[str, bool]:
    """Attach what the user thought of an answer."""
    return {"taken": feedback(run_id, stars)}


def try_it() -> Iterator[str]:
    """Ask one question, as a client does."""
    from fastapi.testclient import TestClient

    with TestClient(app) as client:
        reply = client.get("/ask", params={"question": "What is the capital of France?"})
        yield reply.text
        client.post(f"/rate/{reply.headers['x-run-id']}", params={"stars": 5}).raise_for_status()
        yield f"still pending: {monitor.flush(timeout=10)}"
    yield f"evaluated: {monitor.stats().evaluated}"


if __name__ == "__main__":
    for line in try_it():
        print(line)
