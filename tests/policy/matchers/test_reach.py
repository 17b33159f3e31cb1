from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ci_agent.policy.matchers.path_globs import parse_path_glob
from ci_agent.policy.matchers.reach import Anchors, GlobIndex, anchor, anchor_for_denial, fold, names_of


@pytest.fixture
def anchors(tmp_path: Path) -> Anchors:
    (tmp_path / "work/real").mkdir(parents=True)
    (tmp_path / "work/link").symlink_to("real")
    (tmp_path / "outside").mkdir()
    (tmp_path / "alias").symlink_to("outside")
    return Anchors(tmp_path / "work", tmp_path / "home")


def allows(glob: str, anchors: Anchors, path: Path) -> bool:
    return any(each.covers(names_of(path)) for each in anchor(parse_path_glob(glob), anchors))


def denies(glob: str, anchors: Anchors, path: Path) -> bool:
    folded = tuple(map(fold, names_of(path)))
    return any(each.covers(folded) for each in anchor_for_denial(parse_path_glob(glob), anchors))


def test_globs_start_in_the_workspace_at_the_root_or_at_home(anchors: Anchors, tmp_path: Path) -> None:
    assert allows("src/*", anchors, tmp_path / "work/src/a")
    assert allows("/etc/*", anchors, Path("/etc/hosts"))
    assert allows("~/.cache/**", anchors, tmp_path / "home/.cache/x/y")
    assert not allows("**", anchors, tmp_path / "work-evil/a")
    assert not allows("**", anchors, tmp_path / "work")


def test_the_fixed_part_of_an_absolute_glob_is_freed_of_links(anchors: Anchors, tmp_path: Path) -> None:
    assert allows(f"{tmp_path}/alias/**", anchors, tmp_path / "outside/a")


def test_a_link_in_the_workspace_does_not_widen_an_allow_but_a_deny(anchors: Anchors, tmp_path: Path) -> None:
    assert not allows("link/**", anchors, tmp_path / "work/real/a")
    assert denies("link/**", anchors, tmp_path / "work/real/a")
    assert denies("link/**", anchors, tmp_path / "work/link/a")


@pytest.mark.parametrize("name", ["STRASSE", "stra\u00dfe", "straSSe"])
def test_denies_fold_case(anchors: Anchors, tmp_path: Path, name: str) -> None:
    assert denies("**/Stra\u00dfe", anchors, tmp_path / "work" / name)


@pytest.mark.parametrize(
    ("glob", "run", "spelled"),
    [
        (".git/**", (".git",), True),
        ("sub/.GIT/hooks/*", (".git",), True),
        ("**/.git/config", (".git",), True),
        ("**", (".git",), False),
        (".gi*/**", (".git",), False),
        (".github/workflows/*", (".github", "workflows"), True),
        (".github/**", (".github", "workflows"), False),
        (".github/*/workflows/x", (".github", "workflows"), False),
        ("/proc/cpuinfo", ("proc",), True),
    ],
)
def test_a_glob_spells_names_that_stand_together(
    anchors: Anchors, glob: str, run: tuple[str, ...], spelled: bool
) -> None:
    (anchored,) = anchor(parse_path_glob(glob), anchors)
    assert anchored.spells(run) is spelled


def test_an_index_finds_every_glob_that_covers_a_path(anchors: Anchors, tmp_path: Path) -> None:
    texts = ["**", "src/**", "src/*", "src/a.py", "**/a.py", "**/*.py", "**/a*", "*/a.py", "**/a*y", "src/**/a.py"]
    texts += [f"other{number}/**" for number in range(20)] + [f"**/other{number}.py" for number in range(20)]
    globs = [(each, text) for text in texts for each in anchor(parse_path_glob(text), anchors)]
    path = names_of(tmp_path / "work/src/a.py")
    assert sorted(GlobIndex(globs).covering(path)) == sorted(text for each, text in globs if each.covers(path))
    assert set(GlobIndex(globs).covering(path)) == set(texts[:10])


@given(
    st.lists(st.lists(st.sampled_from(("**", "*", "a*b", "*ab*", "a", "b*", "*b", "*a*b*")), min_size=1, max_size=4)),
    st.lists(st.sampled_from(("a", "b", "ab", "aab", "ba", "xabx", "bb")), max_size=5),
)
def test_an_index_finds_whatever_is_covered_or_listed(globs: list[list[str]], names: list[str]) -> None:
    anchors = Anchors(Path("/w"), None)
    texts = sorted({"/".join(parts) for parts in globs})
    # More of them, so that the index arranges what would else be tried one by one.
    texts += [f"{text}{number}" for text in ("*", "x*", "**/*y*/*z") for number in range(9)]
    anchored = [(each, text) for text in texts for each in anchor(parse_path_glob(text), anchors)]
    path = ("w", *names)
    near = {text for _, text in GlobIndex(anchored).near(path)}
    fitting = {
        text for each, text in anchored if each.covers(path) or each.covers_listing(path) or each.covers_beneath(path)
    }
    assert fitting <= near
    assert set(GlobIndex(anchored).covering(path)) == {text for each, text in anchored if each.covers(path)}
