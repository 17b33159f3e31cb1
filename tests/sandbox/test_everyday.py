"""What people run in CI works in the sandbox as it does outside."""

import shutil
from pathlib import Path
from typing import Any

import pytest

from ci_agent.sandbox.ruleset import terminals_of_others

Place = Any  # tests/sandbox/conftest.py

WORKS = {
    "null, zero, full and random": "echo x > /dev/null && head -c 9 /dev/zero /dev/random /dev/urandom | wc -c > n",
    "errors to /dev/stderr": "echo x | tee /dev/stderr > /dev/stdout",
    "process substitution": "diff <(echo a) <(echo a)",
    "here-documents": "cat <<END\nx\nEND",
    "temporary files": 'file=$(mktemp) && folder=$(mktemp -d) && mv "$file" "$folder/x" && cp "$folder/x" here',
    "temporary files of Python": "python3 -c 'import tempfile; f = tempfile.NamedTemporaryFile(); f.write(b\"x\")'",
    "semaphores": "python3 -c 'import multiprocessing as m; m.Lock(); print(m.Pool(2).map(abs, [-1]))'",
    "jobs and signals among themselves": "sleep 60 & kill $! ; ! wait $!",
    "moving between folders": "mkdir a b && echo x > a/x && mv a/x b/y && mv b a/c && rm -r a",
    "links in the workspace": "echo x > a && ln a b && ln -s a c && cat b c",
    "unpacking": "mkdir a && echo x > a/x && tar czf a.tgz a && rm -r a && tar xzf a.tgz && cat a/x",
    "programs made here": "printf '#!/bin/sh\\necho hi\\n' > tool && chmod +x tool && ./tool",
    "names of files everywhere": "ls / /etc /dev > /dev/null; find / -maxdepth 1 > /dev/null",
    "what the kernel tells": "cat /proc/cpuinfo /proc/meminfo /proc/self/status /proc/mounts > /dev/null; nproc",
    "name service": "getent passwd root && id",
}


@pytest.mark.parametrize("command", WORKS.values(), ids=WORKS)
def test_everyday_command(place: Place, command: str) -> None:
    ran = place.run(command)
    assert ran.status == 0, ran.text


def test_a_terminal_of_its_own_while_there_is_nobody_elses(place: Place) -> None:
    for _ in range(10):  # another test may have opened one after the look
        if place.sandbox.kind == "landlock" and terminals_of_others():
            pytest.skip("a terminal is open on this machine, and Landlock cannot tell one's own from it")
        ran = place.run("python3 -c 'import pty; pty.spawn([\"true\"])'")
        if ran.status == 0:
            break
    assert ran.status == 0, ran.text


def test_sockets_of_this_machine(place: Place) -> None:
    inside = "a, b = socket.socketpair(); a.send(b'x'); server = socket.socket(socket.AF_UNIX); server.bind('s')"
    interfaces = "socket.if_nameindex(); socket.getaddrinfo('localhost', 80)"
    place.write(
        place.workspace / "attempt.py",
        f"import asyncio, socket\n{inside}\n{interfaces}\nasyncio.run(asyncio.sleep(0))\n",
    )
    ran = place.run("python3 attempt.py")
    assert ran == type(ran)(0, "")


def needs(program: str) -> None:
    if shutil.which(program, path="/usr/local/bin:/usr/bin:/bin") is None:
        pytest.skip(f"{program} is not installed")


def test_git_commits_and_shows(place: Place) -> None:
    needs("git")
    commit = "git init -q . && echo x > a && git add a && git -c user.name=n -c user.email=e commit -qm first"
    ran = place.run(
        f"{commit} && echo y >> a && git diff --stat && git status --short && git stash && git log --oneline"
    )
    assert ran.status == 0, ran.text
    assert "1 file changed" in ran.text


def test_git_reads_where_nothing_may_be_written(place: Place) -> None:
    needs("git")
    commit = "git init -q . && echo x > a && git add a && git -c user.name=n -c user.email=e commit -qm first"
    assert place.run(commit).status == 0
    place.write(place.workspace / "a", "changed\n")
    ran = place.run("git status --short; git diff; git log --oneline; git grep change", place.access(writable=()))
    assert ran.status == 0, ran.text
    assert " M a" in ran.text


def test_make_runs_jobs_in_parallel(place: Place) -> None:
    needs("make")
    rule = "all: a b c\n%:\n\tsleep 0.1; echo $@ > $@\n"
    place.write(place.workspace / "Makefile", rule)
    ran = place.run("make -j4 && cat a b c")
    assert ran.status == 0, ran.text


def test_a_build_makes_its_folder_and_reads_it_back(place: Place) -> None:
    place.write(
        place.workspace / "build.sh", "rm -rf dist; mkdir dist; cp build.sh dist/app; sh -n dist/app; ls dist\n"
    )
    ran = place.run("sh build.sh")
    assert ran == type(ran)(0, "app\n")


def test_npm_runs_scripts(landlocked: Place) -> None:
    needs("npm")
    landlocked.write(
        landlocked.workspace / "package.json", '{"name": "x", "scripts": {"build": "mkdir -p dist && echo 1 > dist/x"}}'
    )
    ran = landlocked.run("npm run build")
    assert ran.status == 0, ran.text
    assert (landlocked.workspace / "dist" / "x").read_text() == "1\n"


@pytest.mark.slow
def test_python_makes_a_virtual_environment(place: Place) -> None:
    ran = place.run("python3 -m venv --without-pip .venv && .venv/bin/python -c 'import sys; print(sys.prefix)'")
    if "ensurepip is not available" in ran.text:
        pytest.skip("this Python has no venv")
    assert ran == type(ran)(0, f"{place.workspace}/.venv\n")


def test_pytest_runs_tests_and_keeps_its_cache(landlocked: Place) -> None:
    test = "def test_files(tmp_path):\n    (tmp_path / 'x').write_text('x')\n    (tmp_path / 'x').rename('y')\n"
    landlocked.write(landlocked.workspace / "test_it.py", test)
    python = shutil.which("pytest") or pytest.skip("no pytest on PATH")
    ran = landlocked.run(f"{python} -q test_it.py", PYTHONDONTWRITEBYTECODE="1")
    assert ran.status == 0, ran.text
    assert (landlocked.workspace / ".pytest_cache").is_dir()


def test_toolchains_in_the_home_folder_run(place: Place) -> None:
    tool = place.write(place.home / ".cargo" / "bin" / "tool", "#!/bin/sh\necho hi\n")
    tool.chmod(0o755)
    place.write(place.home / ".ssh" / "id_rsa", "secret")
    assert place.run("~/.cargo/bin/tool") == type(place.run("true"))(0, "hi\n")


def test_what_may_be_read_in_a_hidden_folder_is_readable(place: Place) -> None:
    known: Path = place.write(place.home / ".ssh" / "known_hosts", "a host\n")
    place.write(place.home / ".ssh" / "id_rsa", "secret")
    ran = place.run("cat ~/.ssh/*", place.access(readable=(str(known),)))
    assert "a host" in ran.text
    assert "secret" not in ran.text


def test_new_files_beside_a_hidden_one_are_only_written_under_landlock(landlocked: Place) -> None:
    hidden = landlocked.write(landlocked.workspace / ".env", "secret")
    ran = landlocked.run("echo x > new; cat new", landlocked.access(hidden=(str(hidden),)))
    assert ran.text == "cat: new: Permission denied\n"
    assert landlocked.run("cat new", landlocked.access(hidden=(str(hidden),))).text == "x\n"
