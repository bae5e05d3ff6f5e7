#!/usr/bin/env bash
# Brings what the editor tests need into a cache folder: VS Code for browsers, Chromium, a driver. A second run is quick.
# Prints the folder at the end.
set -euo pipefail
CODE_SERVER=4.139.1 PLAYWRIGHT=1.65.1
here=$(cd "$(dirname "$0")" && pwd)
cache=${HAVERSACK_E2E_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/haversack-e2e}
mkdir -p "$cache"
cd "$cache"
quiet=(--no-audit --no-fund --loglevel=error)

if ! command -v chromium >/dev/null; then
  apt-get update -qq
  DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends chromium fonts-dejavu-core >/dev/null
fi

PATH=$("$here/../node24.sh"):$PATH
export PATH

if [ ! -e "code-server/.done-$CODE_SERVER" ]; then
  # Without install scripts nothing is compiled; the package's own script runs the same two installs.
  rm -rf code-server && mkdir code-server
  (
    cd code-server && npm init -y >/dev/null
    npm install --ignore-scripts "${quiet[@]}" "code-server@$CODE_SERVER" >/dev/null
    for folder in node_modules/code-server/lib/vscode node_modules/code-server/lib/vscode/extensions; do
      (cd "$folder" && npm install --omit=dev --ignore-scripts "${quiet[@]}" >/dev/null)
    done
    touch ".done-$CODE_SERVER"
  )
fi

if [ ! -d "driver/node_modules/playwright-core" ]; then
  mkdir -p driver
  (cd driver && npm init -y >/dev/null && npm install "${quiet[@]}" "playwright-core@$PLAYWRIGHT" >/dev/null)
fi
echo "$cache"
