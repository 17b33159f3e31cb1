"""Programs that fetch: the method that a request has, the file that an answer goes to, the host it is for."""

import re
from collections.abc import Iterator
from urllib.parse import unquote

from ci_agent.policy.effects import UrlUse
from ci_agent.policy.programs.copies import use_target
from ci_agent.policy.programs.draft import Draft, is_url
from ci_agent.policy.programs.options import parse
from ci_agent.policy.programs.parsed import Parsed
from ci_agent.policy.words import Word, literal_word

_POSTS = ("-d", "--data", "--data-ascii", "--data-binary", "--data-raw", "--data-urlencode", "--json", "-F", "--form")
_POSTS_TOO = ("--form-string", "--post-data", "--post-file", "--body-data", "--body-file")
_MORE_FILES = re.compile(r"=[@<][^;]*[\"\\,]|;\s*headers\s*=", re.IGNORECASE)
"""`-F a=@b,c` sends two files, `a=@"b"` is quoted, and `a=b;headers=@c` sends one more."""
_PART_OF_URL = re.compile(r"#[0-9]")
_REMOTE = re.compile(r"(?:[^/:@]+@)?(\[[^\]/]+\]|[^/:]+):")


def read_curl(parsed: Parsed, draft: Draft) -> None:
    urls = [operand.word for operand in parsed.operands]
    for index, value in parsed.values("--url"):
        urls.append(value)
        if (value.prefix or value.text).startswith("@"):
            draft.hazard(index, "fetches what is listed in a file")
    draft.urls += [UrlUse(_with_scheme(url), method) for url in urls for method in _methods(parsed)]
    _use_answers(parsed, draft, urls)
    for index, value in parsed.values("-w", "--write-out"):
        if "%output{" in value.text:
            draft.hazard(index, "writes a file")
    if not parsed.surely("-g", "--globoff"):
        _refuse_globs(parsed, draft)
    for index, value in parsed.values("-b", "--cookie"):
        _use_unless_pair(draft, index, value)
    for _, value in parsed.values("-F", "--form"):
        _use_form_file(draft, value)
        if _MORE_FILES.search(value.text):
            draft.doubt(f"which files {value.text} sends is not known: write each plainly, in a field of its own")
    for _, value in parsed.values("--data-urlencode", "--url-query"):
        _use_form_file(draft, value)


def _refuse_globs(parsed: Parsed, draft: Draft) -> None:
    """curl makes several names of `-T {a,b}` and `-T a[1-9]`, and puts what a URL was made of into `-o #1`."""
    for index, value in parsed.values("-T", "--upload-file"):
        if "{" in value.text or "[" in value.text:
            draft.hazard(index, "sends files under names that curl makes: add --globoff")
    for _, value in parsed.values("-o", "--output"):
        if _PART_OF_URL.search(value.text):
            draft.doubt(f"which file {value.text} means is not known: add --globoff")


def _with_scheme(url: Word) -> Word:
    """Without a scheme, `http` is meant."""
    return url if url.literal is None or is_url(url) else literal_word(f"http://{url.text}", url.span)


_METHOD = re.compile(r"[A-Z]+")


def read_httpie(parsed: Parsed, draft: Draft) -> None:
    """`http METHOD URL ITEM...`: without a method, data make it POST; `NAME@FILE` and `NAME=@FILE` send the file."""
    words = [operand.word for operand in parsed.operands]
    method = words.pop(0).text if words and _METHOD.fullmatch(words[0].literal or "") else None
    if not words:
        return
    url, *items = words
    text = f"localhost{url.text}" if url.text.startswith(":") else url.text
    scheme = parsed.profile.name
    spelled = url if url.literal is None or is_url(url) else literal_word(f"{scheme}://{text}", url.span)
    draft.urls.append(UrlUse(spelled, method or ("POST" if items else "GET")))
    for item in items:
        if item.literal is None and "=" not in item.prefix:
            draft.doubt(f"{item.text} may name a file to send")
        elif "@" in item.text:
            draft.use("read", literal_word(item.text.partition("@")[2], item.span))


def read_form(parsed: Parsed, draft: Draft) -> None:
    for _, value in parsed.values("-F", "--field"):
        _use_form_file(draft, value)


def _use_unless_pair(draft: Draft, index: int, cookies: Word) -> None:
    """`-b NAME=VALUE` are cookies, anything else is a file of them."""
    if "=" not in (cookies.prefix or cookies.text):
        draft.use("read", cookies)
    if cookies.kind == "unknown" and "=" not in cookies.prefix:
        draft.hazard(index, "may read a file")


def _use_form_file(draft: Draft, field: Word) -> None:
    """`NAME=@FILE`, `NAME=<FILE`, `NAME@FILE`: the file is sent."""
    text = field.prefix if field.kind == "unknown" else field.text
    paths = list(_paths_in_field(text))
    for path in paths:
        draft.use("read", field if field.literal is None else literal_word(path.partition(";")[0], field.span))
    if not paths and field.kind == "unknown" and "=" not in text.rstrip("="):
        draft.doubt(f"{field.text} may name a file to send")


def _paths_in_field(text: str) -> Iterator[str]:
    """A name may hold an `@` or a `<` itself: which of them counts depends on the option."""
    name, _, value = text.partition("=")
    if value.startswith(("@", "<")):
        yield value[1:]
    if "@" in name:
        yield text.partition("@")[2]


def _use_answers(parsed: Parsed, draft: Draft, urls: list[Word]) -> None:
    """`-O` names the file as the URL ends, `-J` as the server says; `--output-dir` is where either is."""
    folders = [value for _, value in parsed.values("--output-dir")] or [literal_word(".")]
    if parsed.has("-O", "--remote-name", "--remote-name-all"):
        for folder in folders:
            draft.use("write", folder, into=[literal_word(_last_name(url), url.span) for url in urls])
    if parsed.has("-J", "--remote-header-name"):
        for folder in folders:
            draft.use("write", folder)
    for _, name in parsed.values("-o", "--output") if parsed.has("--output-dir") else ():
        for folder in folders:
            path = f"{folder.literal}/{name.literal}"
            known = folder.literal is not None and name.literal is not None
            draft.use("write", literal_word(path, name.span) if known else name)


def _methods(parsed: Parsed) -> list[str]:
    """What each request may have: behind `--next` stand options of another one."""
    if not parsed.has("--next", "-:"):
        return [_method(parsed)]
    given = [value.literal or "*" for _, value in parsed.values("-X", "--request")]
    kinds = [("HEAD", ("-I", "--head")), ("PUT", ("-T", "--upload-file")), ("POST", (*_POSTS, *_POSTS_TOO))]
    return list(dict.fromkeys(["GET", *given, *(method for method, names in kinds if parsed.has(*names))]))


def _method(parsed: Parsed) -> str:
    given = parsed.last("-X", "--request", "--method")
    if given is not None:
        return given.literal or "*"
    if parsed.surely("-I", "--head"):
        return "HEAD"
    if parsed.has("-T", "--upload-file"):
        return "PUT"
    if parsed.has(*_POSTS, *_POSTS_TOO) and not parsed.surely("-G", "--get"):
        return "POST"
    return "GET"


def read_wget(parsed: Parsed, draft: Draft) -> None:
    """Without `-O` the answer goes to a file that is named as the URL ends."""
    method = _method(parsed)
    folder = parsed.last("-P", "--directory-prefix") or literal_word(".")
    redirects = parsed.last("--max-redirect")
    for operand in parsed.operands:
        draft.urls.append(UrlUse(_with_scheme(operand.word), method))
        if redirects is None or redirects.literal != "0":
            draft.hazard(operand.at, "follows redirects to hosts that no rule has seen: add --max-redirect=0")
        if not (parsed.has("-O", "--output-document") or parsed.surely("--spider")):
            draft.use("write", folder, into=[literal_word(_last_name(operand.word), operand.word.span)])


def _last_name(url: Word) -> str:
    path = (_with_scheme(url).literal or "").split("#")[0].partition("://")[2].partition("/")[2]
    return unquote(path).rpartition("/")[2] or "index.html"


def read_ssh(parsed: Parsed, draft: Draft) -> None:
    """The command runs on the other host; only the way there matters here. Behind the host, options go on."""
    for operand in parsed.operands[:1]:
        draft.urls.append(UrlUse(_ssh_url(operand.word)))
    if parsed.profile.name == "ssh" and parsed.operands[1:]:
        _read_behind_host(parsed, draft)


def _read_behind_host(parsed: Parsed, draft: Draft) -> None:
    operands = parsed.operands[1:]
    behind = parse(parsed.profile, [operand.word for operand in operands], 0)
    if behind.problem is not None:
        draft.doubt(behind.problem)
    for found in behind.options:
        if found.option.meaning != "data":
            draft.hazard(operands[found.at].at, found.option.why or "is an option of ssh: write it before the host")


def read_ssh_keygen(parsed: Parsed, draft: Draft) -> None:
    """`-f FILE` is asked about by some options, and written by all others, with `FILE.pub` beside it."""
    for _, file in parsed.values("-f"):
        draft.use("read", file)
        if not parsed.has("-l", "-y", "-e", "-B", "-L", "-F"):
            draft.use("write", file)
            draft.use("write", literal_word(f"{file.text}.pub", file.span) if file.literal else file)


def read_sftp(parsed: Parsed, draft: Draft) -> None:
    """`sftp`, `ftp`: commands come from standard input, and some of them run programs here."""
    read_ssh(parsed, draft)
    if not parsed.has(*parsed.profile.instead):
        draft.doubt(f"the commands that {parsed.profile.name} reads from its input are not known")


def _ssh_url(host: Word) -> Word:
    if host.literal is None or is_url(host):
        return host
    return literal_word(f"ssh://{host.text.rpartition('@')[2]}/", host.span)


def read_copy(parsed: Parsed, draft: Draft) -> None:
    """`scp`, `rsync`: operands are local files or `HOST:PATH`; the last is written."""
    words = [operand.word for operand in parsed.operands]
    sources, target = (words[:-1], words[-1]) if len(words) > 1 else (words, None)
    recursive = parsed.has("-r", "-R", "-a", "--recursive", "--archive")
    for word in sources:
        if not _use_remote(draft, word):
            draft.use("read", word, recursive)
            if parsed.has("--read-batch"):
                draft.use("write", word, recursive=True)
    if target is not None and not _use_remote(draft, target):
        use_target(parsed, draft, target, [_local_part(source) for source in sources], recursive)


def _local_part(source: Word) -> Word:
    """Without the host, for the name that the copy gets."""
    if source.literal is None:
        return source
    match = None if is_url(source) else _REMOTE.match(source.text)
    return literal_word(source.text[match.end() :] or ".", source.span) if match else source


def _use_remote(draft: Draft, word: Word) -> bool:
    """Whether the word names a file elsewhere, which then counts as a URL."""
    if word.literal is None:
        draft.doubt(f"{word.text} may name another host")
        return False
    if is_url(word):
        draft.urls.append(UrlUse(word))
        return True
    match = _REMOTE.match(word.text)
    if match is None:
        return False
    draft.urls.append(UrlUse(literal_word(f"ssh://{match[1]}/", word.span)))
    return True


def read_container_copy(parsed: Parsed, draft: Draft) -> None:
    """`docker cp`, `kubectl cp`: `NAME:PATH` is inside a container, the other side is a local file."""
    for position, operand in enumerate(parsed.operands[:2]):
        word = operand.word
        if word.literal is None:
            draft.doubt(f"{word.text} may be a local file")
        elif ":" not in word.text or word.text.startswith((".", "/")):
            draft.use("write" if position else "read", word, recursive=True)


_CLOUD_SETTINGS = frozenset({"configure", "config", "ssh", "ssm", "extension", "alias", "components", "rest"})


def read_cloud(parsed: Parsed, draft: Draft) -> None:
    """`aws s3 cp FILE s3://X` and its like read or write the file; some words change settings or run programs."""
    texts = [operand.word.literal for operand in parsed.operands]
    if not {"submit", "build"}.isdisjoint(texts):
        # What is built there is sent there.
        folders = [each.word for each in parsed.operands if each.word.text.startswith((".", "/"))]
        for folder in folders or [literal_word(".")]:
            draft.use("read", folder, recursive=True)
    copies = any(text in ("cp", "mv", "sync", "rsync") for text in texts)
    for operand, text in zip(parsed.operands, texts, strict=True):
        if text in _CLOUD_SETTINGS and operand.at < _MAX_CLOUD_WORDS:
            draft.hazard(operand.at, "changes settings, or runs or reaches something else")
        elif text is None or not copies or (is_url(operand.word) and not text.startswith("file")):
            continue
        elif "/" in text or "." in text:
            draft.use("read", operand.word, recursive=True)
            draft.use("write", operand.word)


_MAX_CLOUD_WORDS = 4
"""The name of a command is among the first words."""
