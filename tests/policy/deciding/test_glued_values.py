"""Values glued to short options of unknown programs: paths elsewhere, denied files and addresses are facts."""

from collections.abc import Callable
from pathlib import Path

import pytest

from ci_agent.policy.decide import Policy

MakePolicy = Callable[..., Policy]
Put = Callable[..., Path]


@pytest.fixture
def decided(policy: MakePolicy, put: Put) -> Policy:
    for name in (".env", "private/key", "src/x", "src/.env", "lib/x", "../beside"):
        put(name)
    return policy(
        """
        - {id: any, allow: bash, command: "**", paths: [., "**"], host: a.example.com}
        - {id: kept, deny: [read, write], path: ["**/.env", "private/**"]}
        """
    )


def _answer(policy: Policy, command: str) -> tuple[str, str | None]:
    decision = policy.decide("bash", {"command": command})
    return decision.effect, decision.rule_id


@pytest.mark.parametrize(
    "word",
    [
        "-o/etc/passwd",
        "-xo/etc/passwd",
        "-abo/etc/passwd",
        "+o/etc/passwd",
        "-o=/etc/passwd",
        "-xo=/etc/passwd",
        "-ofile:/etc/passwd",
        "-ofile:///etc/passwd",
        "--x=file:/etc/passwd",
        "-oa,/etc/passwd",
        "-oa:/etc/passwd",
        "-o@/etc/passwd",
        "-DX=/usr/bin",
        "-Wl,-rpath,/usr/bin",
        "--x=a:/etc/passwd",
        "--x=a,/etc/passwd",
        "x,/etc/passwd",
        "-o../beside",
        "-xo../beside",
        "-abo../beside",
        "--x=a,../beside",
        "-o/etc/not-there",
        "-xo/etc/not-there",
    ],
)
def test_a_path_elsewhere_needs_a_grant(decided: Policy, word: str) -> None:
    decision = decided.decide("bash", {"command": f"frob {word}"})
    assert (decision.effect, decision.code) == ("deny", "default")
    assert decision.fact is not None
    assert decision.fact.kind in ("read", "write")


@pytest.mark.parametrize(
    "word",
    [
        "-o.env",
        "-xo.env",
        "-abo.env",
        "+o.env",
        "+xo.env",
        "-o=.env",
        "-o@.env",
        "-oa,.env",
        "-oa:.env",
        "-Iprivate",
        "-xIprivate",
        "-Iprivate/key",
        "-xIprivate/key",
        "-abIprivate/key",
        "--x=.env",
        "--x=a,.env",
        "-osrc/.env",
        "-xosrc/.env",
    ],
)
def test_a_file_that_may_not_be_read_is_found(decided: Policy, word: str) -> None:
    assert _answer(decided, f"frob {word}") == ("deny", "kept")
    assert _answer(decided, f"./frob {word}") == ("deny", "kept")


def test_from_another_folder_they_are_found_too(decided: Policy) -> None:
    assert _answer(decided, "cd src && frob -xo.env") == ("deny", "kept")
    assert _answer(decided, "cd src && frob -xI../private") == ("deny", "kept")
    assert _answer(decided, "cd src && frob -xI../lib") == ("allow", "any")


@pytest.mark.parametrize(
    ("word", "url"),
    [
        ("-uhttps://b.example.com/", "https://b.example.com/"),
        ("-Ihttp://b.example.com/", "http://b.example.com/"),
        ("-abuhttps://b.example.com/x", "https://b.example.com/x"),
        ("-u=https://b.example.com/", "https://b.example.com/"),
        ("-utelnet://b.example.com", "telnet://b.example.com"),
        ("+uhttps://b.example.com/", "https://b.example.com/"),
        ("-xa,https://b.example.com/", "https://b.example.com/"),
        ("a=b=https://b.example.com/", "https://b.example.com/"),
        ("https://a.example.com/,https://b.example.com/", "https://b.example.com/"),
        ("--url=https://b.example.com/", "https://b.example.com/"),
    ],
)
def test_an_address_needs_a_grant_for_its_host(decided: Policy, word: str, url: str) -> None:
    decision = decided.decide("bash", {"command": f"frob {word}"})
    assert (decision.effect, decision.code) == ("deny", "default")
    assert f"requesting GET {url}" in decision.reason
    assert _answer(decided, f"./frob {word}")[0] == "deny"


@pytest.mark.parametrize(
    "words",
    """
    -vvv; -n5; -xzf a; -p1; -tx86_64; -e's/a/b/'; s/a/b/; -Isrc/x; -xIsrc/x; -Iab/x; -Wl,-rpath,/not-there/lib; -F:
    -k a/b
    -uhttps://a.example.com/; https://a.example.com/?next=https://b.example.com/; user@b.example.com:/tmp/x; a:b
    -j4 -O2 -Wall; -DNAME=1; -m 'fix: a/b'; -b.example.com:80; +x; -+; -; --; -xhttp:a; -1,2; --range=1..5; -L./lib
    """.replace("\n", ";").split(";"),
)
def test_other_words_need_none(decided: Policy, words: str) -> None:
    assert _answer(decided, f"frob {words}") == ("allow", "any")
