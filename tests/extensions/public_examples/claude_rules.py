"""Lists the files of a folder of rules in the system prompt."""

from wolo.extension import CheckedRequest, Extension


def extend(ext: Extension) -> None:
    @ext.on_request
    def name_rules(request: CheckedRequest) -> None:
        rules = sorted(path.name for path in (ext.cwd / ".claude/rules").glob("*.md"))
        if rules:
            request.system += "\n\nProject rules, to be read when they matter: " + ", ".join(rules)
