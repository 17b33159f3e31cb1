#!/bin/sh
# A whole run on this checkout: calls that succeed, and one of each kind that does not.
set -u
cd "$(dirname "$0")/../.." || exit
mkdir -p demo-out

ci-agent run --verbose \
  --policy examples/demo/policy.yml \
  --model scripted:examples/demo/script.yaml \
  --transcript demo-out/transcript.json \
  --output text \
  "Write a short report about this project into demo-out/report.md and publish it."
status=$?

echo
echo "exit code:  $status"
echo "transcript: demo-out/transcript.json (every call, its decision and its result)"
echo "read it:    .venv/bin/ci-agent report demo-out/transcript.json"
exit "$status"
