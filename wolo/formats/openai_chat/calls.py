"""Which fragment belongs to which call: servers number them well, badly or not at all."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from wolo.formats.decoding.loose_json import NOTHING, read_strictly
from wolo.formats.openai_chat.chunks import Fragment
from wolo.formats.openai_chat.messages import EXTRA_CONTENT
from wolo.formats.text_recovery.leaked_calls import Leaked
from wolo.messages.deltas import CallDelta, Delta
from wolo.messages.parts import Blob


class _Open:
    """A call that is being written."""

    def __init__(self, slot: int) -> None:
        self.slot = slot
        self.id = ""
        self.name = ""
        self.fragments: list[str] = []
        self.size = 0

    @property
    def text(self) -> str:
        return "".join(self.fragments)

    def is_whole(self) -> bool:
        return is_object(self.text)

    def is_torn(self) -> bool:
        """Its arguments have begun and are not complete."""
        return self.size > 0 and not self.is_whole()

    def is_repeated_by(self, name: str, arguments: str) -> bool:
        """The same whole call, sent once more."""
        return bool(name) and name == self.name and len(arguments) == self.size and arguments == self.text and self.is_whole()


class OpenCalls:
    """The calls of one answer. `names` turns the server's tool names into ours."""

    def __init__(self, names: Mapping[str, str]) -> None:
        self._names = names
        self._calls: list[_Open] = []
        self._by_index: dict[int, _Open] = {}
        self._by_place: dict[int, _Open] = {}
        """Where the fragments of unnumbered calls stood in their payload."""

    def __bool__(self) -> bool:
        return bool(self._calls)

    def __len__(self) -> int:
        return len(self._calls)

    def are_whole(self) -> bool:
        return all(call.is_whole() for call in self._calls)

    def has(self, tool: str, arguments: str) -> bool:
        return any(self._names.get(call.name, call.name) == tool and _same(call.text, arguments) for call in self._calls)

    def add_written(self, leaked: Leaked, deltas: list[Delta]) -> None:
        """A call that came as text: our own name of the tool, all of its arguments."""
        call = self._begin()
        call.name, call.size = leaked.tool, len(leaked.arguments)
        call.fragments.append(leaked.arguments)
        deltas.append(CallDelta(call.slot, "", leaked.tool, leaked.arguments, problem=leaked.problem, in_fence=leaked.in_fence))

    def add(self, fragments: Sequence[Fragment]) -> list[CallDelta]:
        """`fragments` are those of one payload."""
        deltas = []
        for place, fragment in enumerate(fragments):
            function = fragment.function
            name = (function.name if function else None) or ""
            arguments = (function.arguments if function else None) or ""
            wire_id = fragment.id or ""
            if not (name or arguments or wire_id):
                continue
            call = self._find(fragment.index, wire_id, name, arguments, place if len(fragments) > 1 else None)
            if wire_id in ("", call.id) and call.is_repeated_by(name, arguments):
                continue
            deltas.append(self._grown(call, wire_id, name, arguments, bytes(fragment.extra_content)))
        return deltas

    def _find(self, index: int | None, wire_id: str, name: str, arguments: str, place: int | None) -> _Open:
        if index is None:
            call = self._find_unnumbered(wire_id, name, place)
        else:
            call = self._find_numbered(index, wire_id, name, arguments)
            self._by_index[index] = call
        if place is not None:
            self._by_place[place] = call
        return call

    def _find_numbered(self, index: int, wire_id: str, name: str, arguments: str) -> _Open:
        """A number is believed, unless what comes under it plainly begins another call, or goes on with one."""
        known = self._by_index.get(index)
        if known is None:
            with_id = self._with_id(wire_id)
            if with_id is not None and (not name or with_id not in self._by_index.values()):
                return with_id
            return self._calls[-1] if self._calls and not wire_id and not name else self._begin()
        if not name or (wire_id and wire_id == known.id):
            return known
        if not known.name and not (known.is_whole() and arguments.lstrip().startswith("{")):
            return known  # its name came late
        if wire_id and known.id:
            return known if known.is_torn() and name == known.name and not arguments.lstrip().startswith("{") else self._begin()
        another = known.is_whole() and (
            name != known.name or (is_object(arguments) and not known.is_repeated_by(name, arguments))
        )
        return self._begin() if another else known

    def _find_unnumbered(self, wire_id: str, name: str, place: int | None) -> _Open:
        last = self._calls[-1] if self._calls else None
        if wire_id:
            known = self._with_id(wire_id)
            if known is not None:
                is_another = name and known.name and name != known.name and known.is_whole()
                return self._begin() if is_another else known
            return last if last is not None and not name and last.is_torn() else self._begin()
        before = self._by_place.get(place) if place is not None else last
        if before is None:
            return self._begin() if name or last is None else last
        begins = name and before.name and (before.id or name != before.name or before.is_whole())
        return self._begin() if begins else before

    def _with_id(self, wire_id: str) -> _Open | None:
        return next((call for call in reversed(self._calls) if call.id == wire_id), None) if wire_id else None

    def _begin(self) -> _Open:
        call = _Open(len(self._calls))
        self._calls.append(call)
        return call

    def _grown(self, call: _Open, wire_id: str, name: str, arguments: str, extra: bytes) -> CallDelta:
        """The first id stays: some servers give every fragment a fresh one."""
        new_id = wire_id if not call.id else ""
        call.id = call.id or wire_id
        call.name = name or call.name
        call.fragments.append(arguments)
        call.size += len(arguments)
        is_there = extra not in NOTHING and read_strictly(extra) is not None
        blobs = (Blob(EXTRA_CONTENT, extra.decode()),) if is_there else ()
        return CallDelta(call.slot, new_id, self._names.get(name, name), arguments, blobs=blobs)


def is_object(text: str) -> bool:
    return isinstance(read_strictly(text), dict)


def _same(some: str, other: str) -> bool:
    return some == other or (is_object(some) and read_strictly(some) == read_strictly(other))
