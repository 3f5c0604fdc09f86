"""`steelyard collect`: an OTLP endpoint that scores the RAG turns in the spans it is sent."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from steelyard.cli._options import ConfiguredJudge, takes


@dataclass(frozen=True, kw_only=True, slots=True)
class CollectOptions:
    """One call of `steelyard collect`, as it was typed."""

    host: Annotated[str, typer.Option(help="The address to listen on.")] = "127.0.0.1"
    port: Annotated[int, typer.Option(min=0, max=65535, help="The port to listen on.")] = 4318
    spool: Annotated[
        str, typer.Option(metavar="FILE|URL", help="Where turns wait to be judged: a file, or a broker.")
    ] = ""
    journal: Annotated[
        Path, typer.Option(metavar="FILE", help="Where spans wait for the rest of their turn.")
    ] = Path("steelyard.spans")
    judge: ConfiguredJudge = ""
    no_judge: Annotated[
        bool, typer.Option("--no-judge", help="Only store the turns; `steelyard worker` judges them.")
    ] = False
    quiet: Annotated[
        float,
        typer.Option(
            min=0.01, metavar="SECONDS", help="Without a new span, after which a trace is complete."
        ),
    ] = 6.0
    ttl: Annotated[
        float, typer.Option(min=0.01, metavar="SECONDS", help="How long missing spans are waited for.")
    ] = 60.0
    max_mb: Annotated[int, typer.Option(min=1, metavar="MB", help="Size of the spans in the journal.")] = 1024


@takes(CollectOptions)
def collect(options: CollectOptions) -> int:
    """Receive OpenTelemetry spans from programs in any language, and score the RAG turns in them.

    Point an exporter (OTLP over HTTP, protobuf or JSON) or a Collector to it. A request is answered when its
    spans are stored; a crash loses none of them. Results go where a Monitor's go: into `steelyard.db`, unless
    `steelyard config` says otherwise.

    On an address other than 127.0.0.1 a token is required: set `STEELYARD_COLLECT_TOKEN` to at least 16
    characters; senders give it as `Authorization: Bearer ...`.

    **Examples**

    - `steelyard collect`
    - `OTEL_EXPORTER_OTLP_TRACES_ENDPOINT=http://127.0.0.1:4318/v1/traces node app.js`
    - `steelyard collect --no-judge --spool turns.spool`, and beside it `steelyard worker --spool turns.spool`
    """
    from steelyard.cli.serving._collecting import run

    return run(options)
