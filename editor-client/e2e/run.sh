#!/usr/bin/env bash
# Installs the packed extension in a fresh VS Code, opens a workspace in headless Chromium and runs journey.mjs.
# Everything lies in a folder of its own; every process it starts ends with it.
set -euo pipefail
set -m # each background job gets a process group, so that it can be ended whole
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
cache=$("$here/setup.sh" | tail -1)
PATH=$("$here/../node24.sh"):$PATH
run=$(mktemp -d)
export PATH RUN=$run WORKSPACE=$run/haversack SHOTS=${SHOTS:-$root/docs/img}
export XDG_CACHE_HOME=$run/cache XDG_DATA_HOME=$run/share XDG_CONFIG_HOME=$run/config
mkdir -p "$WORKSPACE/.vscode" "$SHOTS" "$run"/data/{User,Machine} "$run/extensions"
git -C "$root" archive HEAD server docs | tar -x -C "$WORKSPACE"
echo '{}' > "$WORKSPACE/.vscode/settings.json"

cat > "$run/data/User/settings.json" <<'J'
{"workbench.startupEditor": "none", "telemetry.telemetryLevel": "off", "extensions.autoCheckUpdates": false,
 "extensions.autoUpdate": false, "extensions.ignoreRecommendations": true, "workbench.enableExperiments": false,
 "workbench.secondarySideBar.defaultVisibility": "hidden", "workbench.colorTheme": "Default Dark Modern"}
J
code=(node "$cache/code-server/node_modules/code-server/out/node/entry.js" --config /dev/null
  --user-data-dir "$run/data" --extensions-dir "$run/extensions")
vsce=$root/editor-client/vscode/node_modules/.bin/vsce
(cd "$here/model" && "$vsce" package --no-dependencies --allow-missing-repository --skip-license -o "$run/model.vsix" >/dev/null)
for packed in "$root/editor-client/vscode/haversack.vsix" "$run/model.vsix"; do
  "${code[@]}" --install-extension "$packed" > "$run/install.log" 2>&1 || { cat "$run/install.log"; exit 1; }
done
"${code[@]}" --auth none --bind-addr 127.0.0.1:0 --disable-telemetry --disable-update-check --disable-workspace-trust \
  --disable-getting-started-override --reconnection-grace-time 5 > "$run/code.log" 2>&1 &
server=$!
trap 'kill -- "-$server" 2>/dev/null || true; wait "$server" 2>/dev/null || true; rm -rf "$run"' EXIT
for _ in $(seq 300); do
  BASE=$(grep -oE 'http://127.0.0.1:[0-9]+' "$run/code.log" | head -1 || true)
  [ -n "$BASE" ] && break
  sleep 0.1
done
export BASE
cp "$here"/*.mjs "$cache/driver/"
node "$cache/driver/journey.mjs"
