#!/usr/bin/env bash
# The step of the action: an environment with the locked packages, made once for each job, then ci-agent in this very
# process, so that the runner's signals reach it.
set -euo pipefail

# No program that is started here, pip among them, finds the key in its environment.
declare +x key=$INPUT_API_KEY # a variable of that name that the workflow exports would stay exported
unset INPUT_API_KEY

add() { # to the runner's file $1, behind what an earlier line left without its end; $2 is a format
  local file=$1
  shift
  [ -z "$file" ] || { [ -z "$(tail -c 1 "$file")" ] || echo; printf "$@"; } >>"$file"
}

fail() { # says why wherever a run would; $1 is a line that holds no input as it came
  add "${GITHUB_OUTPUT:-}" '%s=%s\n' conclusion configuration exit-code 3 reason "$1"
  [ "$INPUT_SUMMARY" = false ] \
    || add "${GITHUB_STEP_SUMMARY:-}" '## ❌ ci-agent: configuration, exit code 3\n\n```text\n%s\n```\n' "$1"
  [ "$INPUT_ANNOTATIONS" = false ] || echo "::error title=ci-agent%3A configuration%2C exit code 3::${1//%/%25}"
  echo "ci-agent: $1" >&2
  exit 3
}

truth() { # whether the input $1 with the value $2 is switched on
  case $2 in true) ;; false | '') return 1 ;; *) fail "the input $1 is neither true nor false: $(printf %q "$2")" ;; esac
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
    -r "$lock" || fail "its packages could not be installed: what pip says stands in the log"
  "$environment/bin/python" -I -c 'import site, sys; open(site.getsitepackages()[0] + "/ci_agent.pth", "w").write(sys.argv[1])' \
    "$CI_AGENT_ACTION"
  touch "$environment/ready"
  echo "::endgroup::"
fi

args=(--output text --publish github-outputs)
if truth summary "$INPUT_SUMMARY"; then args+=(--publish github-summary); fi
if truth annotations "$INPUT_ANNOTATIONS"; then args+=(--publish github-annotations); fi
if truth trust-head "$INPUT_TRUST_HEAD"; then args+=(--trust-head); fi
if truth event-text "$INPUT_EVENT_TEXT"; then args+=(--event-text); fi

prompt_file=${CI_AGENT_PROMPT_FILE:-}
if [ -n "${CI_AGENT_TASK:-}" ]; then
  [ -z "$INPUT_PROMPT" ] || fail "the inputs task and prompt: the prompt stands in the task, so give one of them"
  [ -z "$prompt_file" ] || fail "the inputs task and prompt-file: the prompt stands in the task, so give one of them"
else
  [ -z "$INPUT_TASK_FILES" ] || fail "the input task-files is for a task: name its file with the input task"
  [ -z "$INPUT_TASK_INPUTS" ] || fail "the input task-inputs is for a task: name its file with the input task"
  [ -z "$INPUT_PROMPT" ] || [ -z "$prompt_file" ] || fail "the inputs prompt and prompt-file: give one of them"
fi

# What extra-args or a file of options say besides, only the command itself knows.
if [ "$INPUT_EXTRA_ARGS" = "[]" ] && [ -z "${CI_AGENT_CONFIG:-}${CI_AGENT_TASK:-}" ]; then
  [ -n "${CI_AGENT_POLICY:-}" ] || fail "neither the input task nor the input policy is given: name a task's file, or a policy"
  [ -n "${CI_AGENT_MODEL:-}" ] || fail "neither the input task nor the input model is given: name a task's file, or a model"
  [ -n "$INPUT_PROMPT$prompt_file" ] || fail "none of the inputs task, prompt and prompt-file is given: give one of them"
fi

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
[ "$INPUT_EXTRA_ARGS" = "[]" ] || more=$("$environment/bin/python" -I "$CI_AGENT_ACTION/action/extra_args.py" 2>&1) \
  || fail "the input extra-args $more"
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
