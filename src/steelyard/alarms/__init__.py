"""Who is told when scores fall, and what.

An alarm looks at every scored turn of one metric, or of a slice of the turns, and bets on a fall: with a
probability of at most `alpha` it ever goes off although nothing fell, however often it looks. It says what
the mean was and is, since when, and whether the judge changed meanwhile; it goes off once, and says so again
when the scores have recovered. What it knows survives a restart.
"""

# `import x as x`: for the other rooms of the project, and not public.
from steelyard.alarms._alarm import Alarm, alarms_from
from steelyard.alarms._event import AlarmEvent
from steelyard.alarms._event import Range as Range
from steelyard.alarms._sink import AlarmSink
from steelyard.alarms._sink import Follower as Follower
from steelyard.alarms._watcher import DEFAULT_FILE as DEFAULT_FILE
from steelyard.alarms._watcher import AlarmStatus, AlarmWatcher

__all__ = ["Alarm", "AlarmEvent", "AlarmSink", "AlarmStatus", "AlarmWatcher", "alarms_from"]
