"""What package managers take besides names: addresses, files, repositories of well-known hosts."""

import re
from typing import Final

from ci_agent.policy.effects import UrlUse
from ci_agent.policy.programs.draft import Draft, is_url, looks_outside, use_anything
from ci_agent.policy.words import Word, literal_word

_HOSTS: Final = {
    "github": "github.com",
    "gist": "gist.github.com",
    "gitlab": "gitlab.com",
    "bitbucket": "bitbucket.org",
}
_VERSIONED = re.compile(r"(?:@[\w.-]+/)?[\w.-]+(?:\[[^\]]*\])?\s*@\s*(?P<source>[^\s].*)", re.DOTALL)
"""`NAME @ SOURCE`, `NAME[EXTRA]@SOURCE`, `@SCOPE/NAME@VERSION`."""
_VCS = re.compile(r"(?:git|hg|svn|bzr)\+")
_SSH_USER = re.compile(r"(ssh://)[^/@]*@")
_LOCAL = re.compile(r"(?:file|link|portal):(?://)?(?:localhost(?=/))?")
_PROTOCOL = re.compile(r"[a-z][a-z+]*:")
_SCP_LIKE = re.compile(r"(?:[\w.-]+@)?(?P<host>[\w.-]+):")
_OWNER_AND_NAME = re.compile(r"[\w][\w.-]*/[\w][\w.-]*(?:#.*)?")
_OTHER_PROTOCOLS = ("npm:", "workspace:", "patch:", "catalog:", "jsr:")
_KNOWN_PROTOCOLS = (
    *("http:", "https:", "git:", "git+", "ssh:", "file:", "link:", "portal:", "hg+", "svn+", "bzr+"),
    *(f"{name}:" for name in _HOSTS),
)
_MAX_AT_SIGNS = 8
_MODULE = re.compile(r"(?!\.)[^/@]*\.[^/@]*(?:/[^@]*)?(?P<version>@.*)?")


def use_package(draft: Draft, word: Word, *, node: bool = False) -> None:
    """`node`: `OWNER/NAME` is a repository, not a folder."""
    if word.literal is None:
        for choice in word.choices:
            use_package(draft, choice, node=node)
        use_anything(draft, word)
    elif word.text.count("@") > _MAX_AT_SIGNS:
        draft.doubt(f"where {word.text[:40]}... comes from is not known")
    else:
        _use_known(draft, word, node)


def _use_known(draft: Draft, word: Word, node: bool) -> None:
    text = _VCS.sub("", word.text, count=1) if _VCS.match(word.text) else word.text
    host, colon, rest = text.partition(":")
    local = _LOCAL.match(text)
    if local is not None:
        draft.use("read", literal_word(re.split(r"[#?]", text[local.end() :])[0] or ".", word.span), recursive=True)
    elif is_url(literal_word(text)):
        draft.urls.append(UrlUse(literal_word(_SSH_USER.sub(r"\1", text), word.span)))
    elif colon and host in _HOSTS:
        draft.urls.append(UrlUse(literal_word(f"https://{_HOSTS[host]}/{rest}", word.span)))
    elif text.startswith(_OTHER_PROTOCOLS):
        return
    elif versioned := _VERSIONED.fullmatch(text):
        _use_versioned(draft, word, text, versioned["source"], node)
    elif scp := _SCP_LIKE.match(text):
        draft.urls.append(UrlUse(literal_word(f"ssh://{scp['host']}/", word.span)))
    elif node and _OWNER_AND_NAME.fullmatch(text):
        draft.urls.append(UrlUse(literal_word(f"https://github.com/{text}", word.span)))
    else:
        use_anything(draft, word)


def _use_versioned(draft: Draft, word: Word, text: str, source: str, node: bool) -> None:
    """What stands behind the `@` may be a version; `git@HOST:PATH` only looks like it."""
    scp = _SCP_LIKE.match(text)
    says_where = _PROTOCOL.match(source) or "@" in source or (node and "/" in source)
    if scp and scp.end() > len(text) - len(source) and not source.startswith((*_OTHER_PROTOCOLS, *_KNOWN_PROTOCOLS)):
        draft.urls.append(UrlUse(literal_word(f"ssh://{scp['host']}/", word.span)))
    elif says_where:
        use_package(draft, literal_word(source, word.span), node=node)
    elif looks_outside(source):
        draft.use("read", literal_word(source, word.span), recursive=True)


def use_repository_name(draft: Draft, word: Word) -> None:
    """`OWNER/NAME` is at the usual host, `HOST/OWNER/NAME` and a URL say where."""
    host, *others = (word.literal or "").split("/")
    if word.literal is None:
        draft.doubt(f"the host of the repository {word.text} is not known")
    elif is_url(word):
        draft.urls.append(UrlUse(word))
    elif len(others) > 1:
        draft.urls.append(UrlUse(literal_word(f"https://{host}/", word.span)))


def use_go_package(draft: Draft, word: Word, *, fetches: bool) -> None:
    """`HOST/PATH@VERSION` is fetched; without a version only `go get` fetches it."""
    module = _MODULE.fullmatch(word.literal or "")
    if module and (fetches or module["version"]):
        draft.urls.append(UrlUse(literal_word("https://" + word.text.partition("@")[0], word.span)))
    else:
        use_anything(draft, word)
