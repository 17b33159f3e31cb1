#!/usr/bin/env bash
# The step of the action: an environment with the locked packages, made once for each job, then ci-agent in this very
# process, so that the runner's signals reach it.
set -euo pipefail

# No program that is started here, pip among them, finds the key in its environment.
declare +x key=$INPUT_API_KEY # a variable of that name that the workflow exports would stay exported
unset INPUT_API_KEY

fail() {
  echo "::error title=ci-agent::$1"
  exit 3
}

python=${INPUT_PYTHON:-python3}
version=$("$python" -I -c 'import sys; print(sys.version, sys.prefix); sys.exit(sys.version_info < (3, 11))' 2>/dev/null) \
  || fail "the input python names no Python 3.11 or newer: $(printf %q "$python")"

# Named by what is in it, so that a later step with another version makes its own.
lock=$CI_AGENT_ACTION/requirements.lock
digest=$( { echo "$version" "$CI_AGENT_ACTION"; cat "$lock"; } | sha256sum | cut -c1-16)
environment=${RUNNER_TEMP:?}/ci-agent-$digest
if [ ! -e "$environment/ready" ]; then
  echo "::group::ci-agent: installing its packages"
  rm -rf "$environment"
  # The Python's own pip fills the environment if it can: to put another one into it takes as long as all the rest.
  "$python" -I -m venv --without-pip "$environment" || fail "the Python has no venv module: use actions/setup-python"
  pip=("$python" -I -m pip --python "$environment/bin/python")
  "${pip[@]}" --version >/dev/null 2>&1 || {
    "$python" -I -m venv "$environment" || fail "the Python has no pip: use actions/setup-python"
    pip=("$environment/bin/python" -I -m pip)
  }
  "${pip[@]}" install --quiet --disable-pip-version-check --no-deps --no-compile --only-binary :all: --require-hashes \
    -r "$lock"
  "$environment/bin/python" -I -c 'import site, sys; open(site.getsitepackages()[0] + "/ci_agent.pth", "w").write(sys.argv[1])' \
    "$CI_AGENT_ACTION"
  touch "$environment/ready"
  echo "::endgroup::"
fi

args=(--output text --publish github-outputs)
[ "$INPUT_SUMMARY" != true ] || args+=(--publish github-summary)
[ "$INPUT_ANNOTATIONS" != true ] || args+=(--publish github-annotations)
[ "$INPUT_TRUST_HEAD" != true ] || args+=(--trust-head)
[ "$INPUT_EVENT_TEXT" != true ] || args+=(--event-text)
[ -n "$CI_AGENT_TRANSCRIPT" ] || args+=(--transcript "$(mktemp -d "$RUNNER_TEMP/ci-agent-XXXXXXXX")/transcript.json")

lines() { # each line of $2 behind the flag $1
  local line
  while IFS= read -r line || [ -n "$line" ]; do
    [ -z "$line" ] || args+=("$1" "$line")
  done <<<"$2"
}
lines --context-file "$INPUT_CONTEXT_FILES"
lines --input "$INPUT_TASK_INPUTS"

more=
[ "$INPUT_EXTRA_ARGS" = "[]" ] || more=$("$environment/bin/python" -I "$CI_AGENT_ACTION/action/extra_args.py") || fail "the input extra-args is no JSON list of texts"
[ -z "$more" ] || eval "args+=($more)" # words that extra_args.py has quoted

[ -z "$key" ] || args+=(--api-key-file /dev/fd/3)
if [ -n "$INPUT_PROMPT" ]; then
  args+=(--prompt-file -)
fi
files=()
while IFS= read -r line || [ -n "$line" ]; do
  [ -z "$line" ] || files+=("$line")
done <<<"$INPUT_TASK_FILES"

# The key goes over a descriptor: no variable and no argument of what is started here holds it.
prompt=$INPUT_PROMPT
unset "${!INPUT_@}"
exec "$environment/bin/python" -I -m ci_agent run "${args[@]}" -- ${files[@]+"${files[@]}"} 3<<<"$key" <<<"$prompt"
