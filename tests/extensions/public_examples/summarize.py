"""Shows what has happened, without a model."""

from collections import Counter

from wolo.extension import Extension, TurnEvent


def extend(ext: Extension) -> None:
    counts: Counter[str] = Counter()

    @ext.on("call_ended")
    def count(event: TurnEvent) -> None:
        counts[event.data["part"]["tool"]] += 1

    @ext.command("calls", complete=lambda: sorted(counts))
    def show(arguments: str) -> str:
        return ", ".join(f"{name} {number}" for name, number in counts.most_common()) or "no calls"
