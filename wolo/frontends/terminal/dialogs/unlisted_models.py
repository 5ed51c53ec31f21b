"""Names the ways to a model that no list holds: the embedded one, and a server given by its URL."""

EMBEDDED, SERVER = "embedded", "server"
OTHERS = {EMBEDDED: "install the embedded model", SERVER: "another server (URL)"}
"""Ways to a model that is not listed."""
ABOUT_SERVER = "Any server that speaks Chat Completions. It is tried out and saved as a provider, with the models it lists."
