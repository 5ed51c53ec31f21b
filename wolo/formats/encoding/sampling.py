"""How freely a model picks its words, as far as the caller said so."""

from __future__ import annotations

import math

from wolo.formats.format import Request


def sampling_of(request: Request) -> dict[str, float]:
    """Temperature and top_p where they are set; what is no finite number cannot be said in JSON."""
    given = {"temperature": request.temperature, "top_p": request.top_p}
    return {name: value for name, value in given.items() if value is not None and math.isfinite(value)}
