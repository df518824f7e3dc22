#!/usr/bin/env bash
# Set up a fresh Debian or Ubuntu machine: fio, Python 3.11 or later with venv, a virtual environment.
# Usage: setup.sh VENV_FOLDER
set -euo pipefail
venv=$1

newest_python() {
  local name
  for name in python3 python3.14 python3.13 python3.12 python3.11; do
    if "$name" -c 'import sys, ensurepip, venv; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
      echo "$name"
      return 0
    fi
  done
  return 1
}

install() {
  local sudo=()
  if [ "$(id -u)" -ne 0 ]; then
    command -v sudo >/dev/null || { echo "kvbench needs: apt-get install $* (as root)" >&2; exit 3; }
    sudo=(sudo)
  fi
  command -v apt-get >/dev/null || { echo "kvbench needs these, and there is no apt-get: $*" >&2; exit 3; }
  "${sudo[@]}" apt-get update -q
  DEBIAN_FRONTEND=noninteractive "${sudo[@]}" apt-get install -y -q --no-install-recommends "$@"
}

command -v fio >/dev/null || install fio
if ! newest_python >/dev/null; then
  install python3-venv || true
  # A distribution whose python3 is older than 3.11 may carry a newer one beside it.
  newest_python >/dev/null || install python3.11 python3.11-venv || true
fi
python=$(newest_python) || { echo "kvbench needs Python 3.11 or later with venv" >&2; exit 3; }
[ -x "$venv/bin/python" ] || "$python" -m venv "$venv"
