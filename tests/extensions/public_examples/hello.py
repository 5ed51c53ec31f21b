"""The smallest tool."""

from wolo.extension import Extension


def extend(ext: Extension) -> None:
    @ext.tool()
    async def hello(name: str) -> dict[str, str]:
        """Greet somebody."""
        return {"greeting": f"Hello, {name}!"}
