#!/usr/bin/env bash
# Installs this checkout, or the wheel named second, as a user would, and starts it: try_install.sh pip|pipx|uv [WHEEL].
set -euo pipefail
way=$1 package=${2:-$(cd "$(dirname "$0")/../.." && pwd)}
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
export PIPX_HOME=$place/pipx PIPX_BIN_DIR=$place/bin PIPX_MAN_DIR=$place/man UV_TOOL_DIR=$place/uv UV_TOOL_BIN_DIR=$place/bin WOLO_HOME=$place/home
python=$(command -v python || command -v python3)
tools() {  # a program of PyPI, in an environment of its own
    "$python" -m venv "$place/tools"
    "$place/tools/bin/python" -m pip install --quiet "$1"
}

case $way in
pip)
    "$python" -m venv "$place/venv"
    bin=$place/venv/bin
    [ -d "$bin" ] || bin=$place/venv/Scripts
    "$bin/python" -m pip install --quiet "$package"
    ;;
pipx)
    tools pipx
    "$place/tools/bin/pipx" install --quiet --python "$python" "$package"
    bin=$place/bin
    ;;
uv)
    tools uv
    "$place/tools/bin/uv" tool install --quiet --python "$python" "$package"
    bin=$place/bin
    ;;
*)
    echo "try_install.sh: pip, pipx or uv, not $way" >&2
    exit 2
    ;;
esac
"$bin/wolo" --version
"$bin/wolo" --help >/dev/null
report=$("$bin/wolo" doctor 2>&1) || [ $? = 1 ]  # 1: no key is set up
echo "$report"
case $report in *crashed*) exit 1 ;; esac
"$python" "$(dirname "$0")/try_prompt.py" "$bin/wolo"
