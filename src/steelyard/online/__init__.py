"""Turns are taken from the running application, picked, queued, judged and delivered."""

from steelyard.online._default import default_monitor
from steelyard.online._masking import without_content
from steelyard.online._stats import Stats
from steelyard.online.canaries._options import Canaries, CanaryReading, CanaryState
from steelyard.online.config._defaults import spool_settings
from steelyard.online.config._options import MonitorOptions
from steelyard.online.config._settings import Settings
from steelyard.online.config._settings import load as load_settings
from steelyard.online.delivery._sink_counts import SinkCounts
from steelyard.online.monitor import Monitor
from steelyard.online.queue._dead_letters import DeadLetter, Fate
from steelyard.online.queue._open import StoredQueue, open_queue, try_queue
from steelyard.online.queue._protocol import QueueCounts, QueueFailed
from steelyard.online.queue._spool import Spool
from steelyard.online.queue._spool_settings import SpoolSettings
from steelyard.online.selection._budget import Budget
from steelyard.online.selection._decision import Decision
from steelyard.online.selection._price import Price
from steelyard.online.selection._rules import Rule
from steelyard.online.selection._sampling import key_of, sampling_position
from steelyard.online.selection._selection import Selection
from steelyard.online.selection._suspicion import Suspicion

__all__ = [
    "Budget",
    "Canaries",
    "CanaryReading",
    "CanaryState",
    "DeadLetter",
    "Decision",
    "Fate",
    "Monitor",
    "MonitorOptions",
    "Price",
    "QueueCounts",
    "QueueFailed",
    "Rule",
    "Selection",
    "Settings",
    "SinkCounts",
    "Spool",
    "SpoolSettings",
    "Stats",
    "StoredQueue",
    "Suspicion",
    "default_monitor",
    "load_settings",
    "key_of",
    "open_queue",
    "sampling_position",
    "spool_settings",
    "try_queue",
    "without_content",
]
