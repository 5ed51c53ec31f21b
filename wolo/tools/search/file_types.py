"""Files of a language, by the names they usually have."""

from __future__ import annotations

import re

from wolo.errors import ToolError
from wolo.workspace.search.globs import compile_glob

_TYPES = {
    "c": "*.{c,h}",
    "config": "*.{cfg,conf,config,ini}",
    "cpp": "*.{cpp,cc,cxx,hpp,hh,hxx,h,inl}",
    "cs": "*.cs",
    "css": "*.{css,scss,sass,less}",
    "csharp": "*.cs",
    "docker": "{Dockerfile*,*.dockerfile}",
    "elixir": "*.{ex,exs,eex,heex}",
    "erlang": "*.{erl,hrl}",
    "go": "*.go",
    "h": "*.{h,hh,hpp}",
    "haskell": "*.{hs,lhs}",
    "html": "*.{html,htm}",
    "java": "*.java",
    "javascript": "*.{js,jsx,mjs,cjs}",
    "js": "*.{js,jsx,mjs,cjs}",
    "json": "*.{json,jsonl,json5}",
    "julia": "*.jl",
    "kotlin": "*.{kt,kts}",
    "lua": "*.lua",
    "make": "{Makefile,makefile,GNUmakefile,*.mk,*.mak}",
    "markdown": "*.{md,markdown,mdx}",
    "md": "*.{md,markdown,mdx}",
    "objc": "*.{m,h}",
    "ocaml": "*.{ml,mli}",
    "perl": "*.{pl,pm,t}",
    "php": "*.php",
    "proto": "*.proto",
    "ps": "*.{ps1,psm1,psd1}",
    "py": "*.{py,pyi}",
    "python": "*.{py,pyi}",
    "r": "*.{r,R,Rmd}",
    "rb": "*.{rb,gemspec,rake}",
    "rs": "*.rs",
    "ruby": "*.{rb,gemspec,rake}",
    "rust": "*.rs",
    "scala": "*.{scala,sbt}",
    "sh": "*.{sh,bash,zsh,ksh,fish}",
    "shell": "*.{sh,bash,zsh,ksh,fish}",
    "sql": "*.sql",
    "swift": "*.swift",
    "tex": "*.{tex,sty,cls,bib}",
    "toml": "*.toml",
    "ts": "*.{ts,tsx,mts,cts}",
    "tsx": "*.tsx",
    "txt": "*.txt",
    "typescript": "*.{ts,tsx,mts,cts}",
    "vue": "*.vue",
    "xml": "*.{xml,xsd,xsl,xslt,svg}",
    "yaml": "*.{yaml,yml}",
    "yml": "*.{yaml,yml}",
    "zig": "*.zig",
}
_ENDING = re.compile(r"[\w+-]+(?:\.[\w+-]+)*")


def compile_type(name: str) -> re.Pattern[str]:
    """Matches paths of files of this type; a name that is none is taken for what follows the last dot. Raises ToolError."""
    wanted = name.strip().removeprefix("*").removeprefix(".")
    if not _ENDING.fullmatch(wanted):
        raise ToolError(f"`{name}` is no type of file. They are: {', '.join(_TYPES)}; or the ending of a name, such as `vue`.")
    return compile_glob(_TYPES.get(wanted.lower(), f"*.{wanted}"))
