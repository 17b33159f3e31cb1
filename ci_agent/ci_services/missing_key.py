"""Where a CI service takes the model's key from, for whoever runs ci-agent there and has given none."""

from collections.abc import Mapping
from typing import Final

from ci_agent.ci_services.action_inputs import is_action
from ci_agent.ci_services.environment import detect_ci
from ci_agent.errors import ConfigurationError, MissingKeyError

_NO_SECRETS: Final = "a pull request from a fork gets no secrets"

_ACTION: Final = (
    "give it as the input api-key, `api-key: ${{ secrets.NAME }}`, or, for a fallback, set NAME by `env`; "
    + _NO_SECRETS
)

_SERVICES: Final[Mapping[str, str]] = {
    # "Using secrets in GitHub Actions".
    "github": "set NAME by `env: {NAME: ${{ secrets.NAME }}}` at the step; " + _NO_SECRETS,
    # "GitLab CI/CD variables", protected ones.
    "gitlab": "make NAME a masked CI/CD variable of the project; a protected one reaches protected branches alone",
    # "Set secret variables" of Azure Pipelines: no script finds them in its environment by itself.
    "azure": "make NAME a secret variable, and hand it to the script by `env: {NAME: $(NAME)}`",
    "buildkite": "let the agent's secrets set NAME",
    # "Pass secrets to builds from forked pull requests" of CircleCI.
    "circleci": "set NAME in a context or in the project; builds of forks get it only if the project says so",
    "bitbucket": "make NAME a secured variable of the repository",
    "jenkins": "bind NAME by withCredentials around the step",
    "teamcity": "make env.NAME a password parameter of the build",
}


def said_for_the_service(error: MissingKeyError, environment: Mapping[str, str]) -> ConfigurationError:
    """The error with what its reader can do where the run is; as it is where nothing tells that."""
    service = detect_ci(environment)
    way = _ACTION if is_action(environment) else _SERVICES.get(service.provider) if service else None
    if way is None:
        return error
    return ConfigurationError(f"{error.problem}: {way.replace('NAME', error.variables[0])}")
