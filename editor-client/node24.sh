#!/usr/bin/env bash
# Prints the folder of a Node 24, which the extension's build and the editor tests want; fetched through npm once.
set -euo pipefail
NODE=24.21.0
cache=${HAVERSACK_E2E_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/haversack-e2e}
if ! command -v npm >/dev/null; then
  echo "npm is needed to build the extension. Install Node.js with npm." >&2
  exit 1
fi
if [ "$("$cache/node24/node_modules/.bin/node" -v 2>/dev/null || true)" != "v$NODE" ]; then
  mkdir -p "$cache/node24"
  cd "$cache/node24"
  npm init -y >/dev/null
  npm install --no-audit --no-fund --loglevel=error "node@$NODE" >/dev/null
fi
echo "$cache/node24/node_modules/.bin"
