"""The shell lines of docs/guide/ci.md do what the page says, in a fresh repository."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from tests.fakes.provider_server import KEY, ProviderServer
from tests.fakes.replies import call, text

PAGE = (Path(__file__).parents[2] / "docs/guide/ci.md").read_text(encoding="utf-8")
GITLAB = yaml.safe_load(re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)[1])["wolo"]
JENKINS = re.findall(r"script: '(wolo .*?)'\)", PAGE)
PRICED = '[[providers.custom.models]]\nid = "test-model"\nprice = {input = 1.0, output = 1.0}\n'


@pytest.mark.parametrize(
    ("script", "after"), [(GITLAB["script"], GITLAB["after_script"]), (JENKINS, [])], ids=["gitlab", "jenkins"]
)
def test_a_job_changes_a_file(provider: ProviderServer, tmp_path: Path, script: list[str], after: list[str]) -> None:
    home, work = tmp_path / "home", tmp_path / "work"
    settings = home / ".config" / "wolo" / "config.toml"
    settings.parent.mkdir(parents=True)
    settings.write_text(PRICED)
    subprocess.run(["git", "init", "-q", work], check=True)
    env = {"HOME": str(home), "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}", "CI": "true"}
    env |= {"WOLO_BASE_URL": provider.base_url, "WOLO_API_KEY": KEY, "WOLO_MODEL": "custom/test-model"}
    env["TASK"] = '"; $(touch owned) `touch owned`'
    provider.script(call("write", {"path": "made.py", "content": "print(1)\n"}), text("Done."))
    for line in script + after:
        done = subprocess.run(["sh", "-c", line], cwd=work, env=env, capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == 0, done.stderr
    assert json.loads((work / "wolo.json").read_text())["result"] == "Done."
    assert env["TASK"] in str(provider.requests[0].messages)
    assert sorted(each.name for each in work.iterdir() if each.name != "wolo.patch") == [".git", "made.py", "wolo.json"]
    if after:
        assert re.findall(r"^\+\+\+ b/(.*)$", (work / "wolo.patch").read_text(), re.MULTILINE) == ["made.py"]
