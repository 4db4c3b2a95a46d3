#!/usr/bin/env bash
# `./dev demo`: runs the server, an agent and the demo workload until Ctrl-C, and then stops all of them.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
bin=build/bin
data=$(mktemp -d -t flamewire-demo.XXXXXX)
pids=()
# shellcheck disable=SC2317  # called by the trap
stop() {
  trap - EXIT INT TERM
  for ((i = ${#pids[@]} - 1; i >= 0; --i)); do kill -TERM "${pids[i]}" 2>/dev/null || true; done
  for pid in "${pids[@]}"; do wait "$pid" 2>/dev/null || true; done
  rm -rf "$data"
}
trap stop EXIT
trap 'exit 0' INT TERM

"$bin/flamewire-server" --port 0 --http-port "${DEMO_HTTP_PORT:-8080}" --data-dir "$data" --source-dir . "$@" >"$data/server.out" 2>"$data/server.log" &
pids+=($!)
for _ in $(seq 100); do
  port=$(sed -n 's/^agent-port: //p' "$data/server.out")
  url=$(sed -n 's/^page: //p' "$data/server.out")
  code=$(sed -n 's/^On a target: .* --pair //p' "$data/server.out")
  [ -z "$port" ] || [ -z "$url" ] || [ -z "$code" ] || break
  kill -0 "${pids[0]}" 2>/dev/null || { cat "$data/server.log" >&2; exit 1; }
  sleep 0.1
done
"$bin/demo-workload" &
pids+=($!)
"$bin/flamewire-agent" --server 127.0.0.1 --port "$port" --pair "$code" --pid "${pids[1]}" --frequency 999 2>"$data/agent.log" &
pids+=($!)
sleep 1
if ! kill -0 "${pids[2]}" 2>/dev/null; then cat "$data/agent.log" >&2; exit 1; fi
cat "$data/agent.log"
printf '\nA live profile of a sample workload: %s\nPress Ctrl-C to stop.\n' "$url"
while kill -0 "${pids[0]}" 2>/dev/null && kill -0 "${pids[2]}" 2>/dev/null; do sleep 0.5; done
cat "$data/server.log" "$data/agent.log" >&2
exit 1
