"""Compares the prices in the provider files with those of genai-prices, and updates them with --write.

    pip install --group prices
    python benchmarks/refresh_prices.py            # show what has changed
    python benchmarks/refresh_prices.py --write    # and write it

Rows that genai-prices does not have are left unchanged. A price that depends on the hour is taken at its highest, so that a
budget is not exceeded; one that depends on the length of the prompt is taken for ordinary lengths.
"""

from __future__ import annotations

import argparse
import datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

import tomlkit
from genai_prices import data
from genai_prices.types import ConditionalPrice, ModelPrice, StartDateConstraint, TieredPrices

PROVIDER_FILES = Path(__file__).parent.parent / "wolo" / "models" / "providers"
THEIR_NAMES = {"gemini": "google", "moonshot": "moonshotai", "xai": "x-ai"}
"""Provider names that genai-prices spells differently."""
NO_PRICES = frozenset({"zai-coding"})
"""Providers with a flat fee: prices per token would be wrong."""
FIELDS = {"input": "input_mtok", "output": "output_mtok", "cache_read": "cache_read_mtok", "cache_write": "cache_write_mtok"}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else "")
    parser.add_argument("--write", action="store_true", help="write the changed prices into the provider files")
    write = parser.parse_args().write
    today = datetime.datetime.now(tz=datetime.UTC).date()
    changed = sum(refresh(path, today, write=write) for path in sorted(PROVIDER_FILES.glob("*.toml")))
    print(f"{changed} prices {'written' if write else 'differ'}" if changed else "all prices are up to date")


def refresh(path: Path, today: datetime.date, *, write: bool) -> int:
    """Returns how many prices of one provider file differ from genai-prices."""
    document = tomlkit.parse(path.read_text("utf-8"))
    rows = document.unwrap().get("models", [])
    known = next((each for each in data.providers if each.id == THEIR_NAMES.get(path.stem, path.stem)), None)
    if known is None or path.stem in NO_PRICES:
        print(f"{path.stem}: {len(rows)} models, nothing to compare with")
        return 0
    changed = 0
    for row in rows:
        found = next((model for model in known.models if model.match.is_match(row["id"])), None)
        new = {} if found is None else prices_of(found.prices, today)
        old = {name: value for name, value in row.get("price", {}).items() if name in FIELDS}
        if not new or new == old:
            continue
        changed += 1
        print(f"{path.stem}/{row['id']}: {old or 'unknown'} → {new}")
        set_price(document, row["id"], {**new, "source": f"genai-prices {version('genai-prices')}", "date": today.isoformat()})
    if write and changed:
        path.write_text(tomlkit.dumps(document), "utf-8")
    return changed


def set_price(document: tomlkit.TOMLDocument, model_id: str, price: dict[str, Any]) -> None:
    table = tomlkit.inline_table()
    table.update(price)
    models: Any = document["models"]
    next(model for model in models if model["id"] == model_id)["price"] = table


def prices_of(prices: ModelPrice | list[ConditionalPrice], today: datetime.date) -> dict[str, float]:
    """Prices of a million tokens today, under the names of the provider files."""
    if isinstance(prices, ModelPrice):
        return flat(prices)
    begun = [each for each in prices if begins(each) <= today]
    latest = max(map(begins, begun))
    last = max(index for index, each in enumerate(begun) if begins(each) == latest and dated(each))
    current = [flat(each.prices) for each in begun[last:]]
    return {name: max(each[name] for each in current if name in each) for name in current[0]}


def dated(price: ConditionalPrice) -> bool:
    return price.constraint is None or isinstance(price.constraint, StartDateConstraint)


def begins(price: ConditionalPrice) -> datetime.date:
    return price.constraint.start_date if isinstance(price.constraint, StartDateConstraint) else datetime.date.min


def flat(price: ModelPrice) -> dict[str, float]:
    found = {name: getattr(price, theirs, None) for name, theirs in FIELDS.items()}
    return {
        name: float(value.base if isinstance(value, TieredPrices) else value)
        for name, value in found.items()
        if value is not None
    }


if __name__ == "__main__":
    main()
