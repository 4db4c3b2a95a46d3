#!/usr/bin/env bash
# `./dev web`: runs a server with the page from the sources, which are bundled again after each change. Ctrl-C stops
# both.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
out=build/web/watched
log=$(mktemp -t flamewire-web.XXXXXX)
pids=()
# shellcheck disable=SC2317  # called by the trap
stop() {
  trap - EXIT INT TERM
  for pid in "${pids[@]}"; do kill -TERM "$pid" 2>/dev/null || true; done
  for pid in "${pids[@]}"; do wait "$pid" 2>/dev/null || true; done
  rm -f "$log"
}
trap stop EXIT
trap 'exit 0' INT TERM

rm -rf "$out"
mkdir -p "$out"
node build/web/ui/build.mjs --source web --out "$out" --watch &
pids+=($!)
build/bin/flamewire-server --web-dir "$out" "$@" >"$log" &
pids+=($!)
url=
until [ -n "$url" ] && [ -f "$out/app.js" ]; do
  for pid in "${pids[@]}"; do kill -0 "$pid" 2>/dev/null || exit 1; done
  sleep 0.1
  url=$(sed -n 's/^page: //p' "$log")
done
tail -n +3 "$log"
printf 'The page from web/src, rebuilt after each change (reload it then): %s\nPress Ctrl-C to stop.\n' "$url"
while kill -0 "${pids[0]}" 2>/dev/null && kill -0 "${pids[1]}" 2>/dev/null; do sleep 0.5; done
exit 1
