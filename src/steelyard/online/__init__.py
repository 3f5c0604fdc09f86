"""Turns are taken from the running application, picked, queued, judged and delivered."""

# `import x as x`: for the other rooms of the project, and not public.
from steelyard.online._budget import Budget, Price
from steelyard.online._canaries import CanaryReading as CanaryReading
from steelyard.online._options import Canaries, MonitorOptions
from steelyard.online._options import spool_settings as spool_settings
from steelyard.online._prepare import without_content as without_content
from steelyard.online._run import Stats
from steelyard.online._selection import Decision as Decision
from steelyard.online._selection import Rule, Selection, Suspicion
from steelyard.online._selection import key_of as key_of
from steelyard.online._selection import sampling_position as sampling_position
from steelyard.online._settings import Settings as Settings
from steelyard.online._settings import load_settings as load_settings
from steelyard.online._settings import settings_file as settings_file
from steelyard.online.monitor import Monitor, default_monitor
from steelyard.online.queue._open import StoredQueue as StoredQueue
from steelyard.online.queue._open import open_queue as open_queue
from steelyard.online.queue._open import try_queue as try_queue
from steelyard.online.queue._protocol import DeadLetter as DeadLetter
from steelyard.online.queue._protocol import Fate as Fate
from steelyard.online.queue._protocol import QueueCounts as QueueCounts
from steelyard.online.queue._protocol import QueueFailed as QueueFailed
from steelyard.online.queue._spool import Spool as Spool
from steelyard.online.queue._spool_file import SpoolSettings

__all__ = [
    "Budget",
    "Canaries",
    "Monitor",
    "MonitorOptions",
    "Price",
    "Rule",
    "Selection",
    "SpoolSettings",
    "Stats",
    "Suspicion",
    "default_monitor",
]
