"""A provider of a company, with a login of its own."""

import os

from wolo.extension import Extension

ADDRESS = "https://llm.company.example/v1"


def login() -> str:
    return "token-of-" + os.environ.get("USER_OF_COMPANY", "nobody")


def extend(ext: Extension) -> None:
    ext.provider("company", base_url=ADDRESS, default_model="large", models=[{"id": "large"}], login=login)
