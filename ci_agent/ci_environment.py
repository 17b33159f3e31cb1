"""Which CI service runs us, as its variables tell it; for the record alone."""

from collections.abc import Mapping

from ci_agent.transcript.run_facts import CIFacts


def detect_ci(environment: Mapping[str, str]) -> CIFacts | None:
    """The service, the repository and the run's page; None outside of CI.

    Variables: GitHub's "default environment variables", GitLab's "predefined variables"; `CI` is what the others
    have in common.
    """
    if environment.get("GITHUB_ACTIONS") == "true":
        return _github(environment)
    if environment.get("GITLAB_CI") == "true":
        return CIFacts("gitlab", environment.get("CI_PROJECT_PATH"), environment.get("CI_JOB_URL"))
    return CIFacts("unknown") if environment.get("CI") in {"true", "1"} else None


def _github(environment: Mapping[str, str]) -> CIFacts:
    repository, run = environment.get("GITHUB_REPOSITORY"), environment.get("GITHUB_RUN_ID")
    server = environment.get("GITHUB_SERVER_URL", "https://github.com")
    url = f"{server}/{repository}/actions/runs/{run}" if repository and run else None
    return CIFacts("github", repository, url)
