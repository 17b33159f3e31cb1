"""What a rule says in plain words: the variable, the option, the path, the host that a variant is about."""

from collections.abc import Iterator
from ipaddress import ip_address
from pathlib import Path

from ci_agent.policy.compiled.net import is_private_address
from ci_agent.policy.gathering.site import Site
from ci_agent.policy.lint.samples import command_patterns, path_glob
from ci_agent.policy.matchers.command_patterns import parse_env_pattern
from ci_agent.policy.matchers.hosts import HostPattern, parse_host_pattern
from ci_agent.policy.matchers.path_globs import Part, matches_parts
from ci_agent.policy.matchers.reach import fold, names_of
from ci_agent.policy.matchers.wildcards import Wildcard
from ci_agent.policy.rules import Rule
from ci_agent.policy.variants.variant import RuleTest
from ci_agent.urls import DEFAULT_PORTS, Address


def lists_variable(name: str) -> RuleTest:
    return lambda rule: any(parse_env_pattern(text).matches(name) for text in rule.env or ())


def spells_word(word: str) -> RuleTest:
    """The word itself, or for `--option=value` the option with a wildcard for its value."""
    name, equals, _ = word.partition("=")

    def says(rule: Rule) -> bool:
        tokens = [token for pattern in command_patterns(rule) for token in pattern.tokens]
        beginnings = [wild.prefix for token in tokens for wild in token.alternatives]
        return any(token.spells(word) for token in tokens) or (
            bool(equals) and any(beginning.startswith(name + equals) for beginning in beginnings)
        )

    return says


def reaches(site: Site, path: Path) -> RuleTest:
    """A glob of the rule, taken by its text alone, covers the path."""
    return lambda rule: any(matches_parts(glob, path.parts[1:]) for glob in _absolute_globs(rule, site))


def spells_name(name: str) -> RuleTest:
    """A glob of the rule has this name of a file or folder in it."""
    return lambda rule: any(
        part is not None and part.literal is not None and fold(part.literal) == name
        for text in (*(rule.path or ()), *(rule.paths or ()))
        for parts in path_glob(text).alternatives
        for part in parts
    )


def lists_host(host: str) -> RuleTest:
    """A name or an address, in its usual spelling."""
    address = _address(host)
    return lambda rule: any(_is_about(parse_host_pattern(text), host, address) for text in rule.host or ("**",))


def lists_scheme(scheme: str) -> RuleTest:
    return lambda rule: scheme in (rule.scheme or ("https",))


def lists_port(port: int) -> RuleTest:
    def says(rule: Rule) -> bool:
        usual = tuple(DEFAULT_PORTS.get(scheme) for scheme in rule.scheme or ("https",))
        return port in (rule.port or usual)

    return says


def lists_method(method: str) -> RuleTest:
    return lambda rule: method in (rule.method or ("GET",))


def _absolute_globs(rule: Rule, site: Site) -> Iterator[tuple[Part, ...]]:
    home = site.around.home
    starts = {"workspace": site.workspace.root, "root": Path("/"), "home": home}
    for text in (*(rule.path or ()), *(rule.paths or ())) or ("**",):
        glob = path_glob(text)
        start = starts[glob.anchor]
        if start is not None:
            folder = tuple(Wildcard((name,)) for name in names_of(start))
            yield from ((*folder, *parts) for parts in glob.alternatives)


def _address(host: str) -> Address | None:
    try:
        return ip_address(host)
    except ValueError:
        return None


def _is_about(pattern: HostPattern, host: str, address: Address | None) -> bool:
    if address is not None:
        within = pattern.network is not None and address in pattern.network
        return within or (pattern.text == "**" and not is_private_address(address))
    return (
        pattern.text == "**" or host == pattern.name or (pattern.suffix is not None and host.endswith(pattern.suffix))
    )
