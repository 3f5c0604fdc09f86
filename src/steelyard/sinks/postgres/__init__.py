"""Results in a Postgres database: the sink that writes them, and what readers of the tables share.

Needs the extra `postgres` (psycopg 3).
"""

from steelyard.sinks.postgres._database import Database, problem_of
from steelyard.sinks.postgres._schema import evaluation_in
from steelyard.sinks.postgres._sink import PostgresSink

__all__ = ["Database", "PostgresSink", "evaluation_in", "problem_of"]
