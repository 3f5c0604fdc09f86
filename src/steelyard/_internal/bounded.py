"""A dict that forgets its oldest entries."""

from __future__ import annotations

import contextlib
from collections import OrderedDict
from collections.abc import Callable, Iterator, MutableMapping
from typing import TypeVar

Key = TypeVar("Key")
Value = TypeVar("Value")


class BoundedDict(MutableMapping[Key, Value]):
    """A mapping with a bound on its entries and, if asked, on their weight; the oldest entry goes first.

    Setting a key makes it the newest; reading it does not. Single operations are safe in several threads
    where no weight is counted.

    Args:
        max_items: How many entries it holds at most.
        max_weight: How much they weigh together at most; no bound by default.
        weigh: The weight of one value, the same whenever it is asked.
        forgotten: Called with each entry that is dropped for lack of room.
    """

    def __init__(
        self,
        *,
        max_items: int,
        max_weight: int | None = None,
        weigh: Callable[[Value], int] | None = None,
        forgotten: Callable[[Key, Value], object] | None = None,
    ) -> None:
        self._items: OrderedDict[Key, Value] = OrderedDict()
        self._max_items = max_items
        self._max_weight = max_weight
        self._weigh = weigh
        self._forgotten = forgotten
        self.weight = 0

    def __getitem__(self, key: Key) -> Value:
        return self._items[key]

    def __setitem__(self, key: Key, value: Value) -> None:
        before = self._items.pop(key, None)
        if before is not None and self._weigh is not None:
            self.weight -= self._weigh(before)
        self._items[key] = value
        if self._weigh is not None:
            self.weight += self._weigh(value)
        while self._is_full():
            self._drop_oldest()

    def __delitem__(self, key: Key) -> None:
        value = self._items.pop(key)
        if self._weigh is not None:
            self.weight -= self._weigh(value)

    def __iter__(self) -> Iterator[Key]:
        return iter(self._items)

    def __len__(self) -> int:
        return len(self._items)

    def __contains__(self, key: object) -> bool:
        return key in self._items

    def _is_full(self) -> bool:
        too_heavy = self._max_weight is not None and self.weight > self._max_weight
        return len(self._items) > self._max_items or (too_heavy and bool(self._items))

    def _drop_oldest(self) -> None:
        # Another thread may have dropped it already.
        with contextlib.suppress(KeyError):
            key, value = self._items.popitem(last=False)
            if self._weigh is not None:
                self.weight -= self._weigh(value)
            if self._forgotten is not None:
                self._forgotten(key, value)
