"""The installed programs really run: what they then do must have been said, and everyday options must do nothing."""

import gzip
import os
import shlex
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

from ci_agent.policy.effects import Effects
from ci_agent.policy.programs.interpret import interpret
from ci_agent.policy.words import literal_word

_WRITES = """
out | sort -o out a
out | sort -ro out a
out | sort --outp=out a
out | sort a -oout
out | uniq a out
out | shuf -o out a
out | iconv -f utf8 -t utf8 -o out a
out | sed -n 'w out' a
out | sed 's/a/b/w out' a
a | sed -i s/a/X/ a
a | sed -ni s/a/X/p a
a.bak | sed -i.bak s/a/X/ a
out | awk '{print > "out"}' a
out | gawk --dump-variables=out '{print}' a
out | gawk -o/dev/null -dout '{print}' a
out | find . -fprint out
out | find . -fprintf out %p
out | find . -fls out
out | tee out
out | cp a out
src/a | cp a src
out | cp -r src out
src/a | cp -t src a
out | mv b out
out | ln -s a out
out | install -m 644 a out
out | install -d out
out | mkdir -p out
out | touch out
out | truncate -s 3 out
out | dd if=a of=out
xaa | split a
outaa | split a out
xx00 | csplit a 1
out | mkfifo out
out | xxd a out
out | xxd -r hex out
out | sdiff -o out a one
out | patch -o out a p.diff
out | make -f /dev/null '$(shell touch out)=1' a
out | zip -qlfout a.zip a
a | patch a p.diff
a | patch -p0 -i p.diff
out | tar -cf out a
out | tar cf out a
member | tar -xf a.tar
src/member | tar -xf a.tar -C src
src/member | tar xfC a.tar src
out | tar --index-file=out -tvf a.tar
out.zip | zip -q out a
member | unzip a.zip
src/member | unzip a.zip -d src
a.gz | gzip -k a
z | gunzip z.gz
out | zstd -o out a
out | git diff --output=out --no-index a b
out | git log --output=out
out | git show --output=out HEAD
out | git archive -o out HEAD
out | git bundle create out HEAD
0001-first.patch | git format-patch -1 --root HEAD
out/0001-first.patch | git format-patch -o out --root HEAD
out | git worktree add out
out | git clone . out
out | git init out
committed | git checkout -- committed
committed | git restore committed
out | curl -o out file://{outside}
out | curl -soout file://{outside}
out | curl -s --trace out file://{outside}
out | curl -s -D out file://{outside}
out | curl -s -c out file://{outside}
out | curl -s --libcurl out file://{outside}
out | curl -s --stderr out file://{outside}
out | wget -q -O out http://127.0.0.1:1/
out | wget -o out http://127.0.0.1:1/
out | openssl rand -out out 4
out | openssl dgst -sha256 -out out a
out | time -o out true
out | strace -o out true
out | script -q -c true out
lock | flock lock true
out | gcc -c -o out t.c
t.o | gcc -c t.c
t.i | gcc -save-temps -c t.c
out | gcc -c -MD -MF out t.c
out | make -f mk out
out | sqlite3 -init dot.sql db
out | sqlite3 db '.output out' 'select 1'
out | sqlite3 db "vacuum into 'out'"
out | sqlite3 db ".backup out"
out | python3 -m json.tool a.json out
out | node --redirect-warnings=out -e 'process.emitWarning("x")'
out | node --trace-event-categories=node --trace-event-file-pattern=out -e 1
out | pytest -q -p no:cacheprovider --junitxml=out tests_none
out | rsync a out
a.json | yq -y -i .a=2 a.json
aout | perl -i"*out" -pe s/a/b/ a
out | ruby -e 'File.write("out", 1)'
out | php -r 'file_put_contents("out", 1);'
""".strip().splitlines()

_RUNS = """
sort -S 1k --compress-program=./evil big
sed 's/.*/.\\/evil/e' one
sed '1e ./evil' one
awk 'BEGIN{system("./evil")}'
awk 'BEGIN{"./evil"|getline}'
awk 'BEGIN{print "x"|"./evil"}'
gawk '@include "evil.awk"; {print}' one
find src -exec ./evil ;
find src -execdir {folder}/evil ;
find a -exec ./evil {} +
xargs -a one ./evil
split --filter=./evil a
tar -xf a.tar --to-command=./evil
tar --to-c=./evil -xf a.tar
tar -I ./evil -cf out a
tar --use-compress=./evil -cf out a
tar --checkpoint=1 --checkpoint-action=exec=./evil -cf out a
tar cIf ./evil out a
zip -q -T -TT ./evil out a
git -c core.fsmonitor=./evil status
git -c alias.x=!./evil x
git --exec-path=. evil
git grep -O./evil changed
git grep --open=./evil changed
git ls-remote --upload-pack=./evil .
git ls-remote --upload-p=./evil .
git fetch --upload-pack ./evil .
git clone --upload-pack=./evil . out
git clone -u ./evil . out
git push --receive-pack=./evil . HEAD:x
git archive --exec=./evil --remote=. HEAD
git rebase --autostash --exec ./evil --root
git show --ext-diff HEAD
git diff --textconv
git commit --allow-empty -e
env ./evil
env -S ./evil
env -S './evil x'
timeout 5 ./evil
nice ./evil
nohup ./evil
stdbuf -o0 ./evil
setsid -w ./evil
flock lock ./evil
flock lock -c ./evil
ionice -c 3 ./evil
script -q -c ./evil out
chrt -b 0 ./evil
taskset -c 0 ./evil
unshare -m ./evil
strace -o out ./evil
bash -c ./evil
bash -c 'eval ./evil'
sh -c ./evil
dash -c ./evil
zsh -c ./evil
bash evil
bash --rcfile evil -i -c true
bash -c 'trap ./evil EXIT'
make SHELL=./evil -f mk out
make -f mk X=./evil runs
make --eval='$(shell ./evil)' -f mk out
make -n -f mk --eval='$(shell ./evil)' out
make -f evil.mk
python3 -c 'import os; os.system("./evil")'
python3 -m evilmodule
perl -e 'system("./evil")'
perl -M-strict -e 'exec "./evil"'
ruby -e 'system("./evil")'
php -r 'system("./evil");'
node -e 'require("child_process").execSync("./evil")'
node -p 'require("child_process").execSync("./evil")'
node -r ./evil.js -e 1
node --require=./evil.js a.js
node --import ./evil.mjs a.js
python3 -m pytest -q -p evilmodule
python3 -m pytest -q -c evil.ini
python3 -m pytest -q -o addopts=-pevilmodule
npm test --script-shell=./evil
npm test --script-sh=./evil
npm --prefix evilpkg test
npm exec -c ./evil
npx -c ./evil
rsync -e ./evil a host:b
rsync --rsh=./evil a host:b
scp -S ./evil a host:b
ssh -o ProxyCommand=./evil host
ssh -oProxyCommand=./evil host
ssh -F evil.ssh host
curl -K evil.curl
wget --use-askpass=./evil http://127.0.0.1:1/
vim -es -c '!./evil' -c 'q!'
sqlite3 db '.shell ./evil'
sqlite3 -cmd '.shell ./evil' db ''
rg --pre ./evil x one
rg --pre=./evil x one
gcc -B./bin/ -c t.c
gcc -wrapper ./evil -c t.c
cmake -P evil.cmake
cmake -E env ./evil
go run -exec ./evil evil.go
dc -e '!./evil'
""".strip().splitlines()

_READS = """
cat {outside}
grep -f {outside} {outside}
grep --file={outside} {outside}
sed -n 'r {outside}' one
sed '$r {outside}' one
sort --files0-from={list0}
wc --files0-from={list0}
du --files0-from={list0}
date -f {outside}
file -f {outside}
diff {outside} /dev/null
diff --from-file={outside} one
git diff --no-index {outside} /dev/null
git diff {outside} one
git blame --contents {outside} committed
git grep --no-index CANARY {folder}/../outside
jq -n --rawfile x {outside} $x
jq -nr --rawfile x {outside} $x
jq -R . {outside}
jq -n --slurpfile x {json} $x
curl -s file://{outside}
tar -cf - -T {list}
tar -cf - {outside}
xxd {outside}
od -c {outside}
strings {outside}
base64 {outside}
head {outside}
tail -n 1 {outside}
tac {outside}
nl {outside}
cut -c1- {outside}
paste {outside}
comm {outside} /dev/null
join {outside} {outside}
fold {outside}
uniq {outside}
shuf {outside}
xargs -a {outside} echo
awk '{print}' {outside}
awk 'BEGIN{while((getline x < "{outside}") > 0) print x}'
awk 'BEGIN{ARGV[1]="{outside}";ARGC=2}{print}'
find {folder}/.. -name outside
ls {folder}/..
cp {outside} /dev/stdout
dd if={outside}
python3 {outside}
perl -ne print {outside}
less {outside}
more {outside}
column {outside}
hexdump -C {outside}
gzip -cf {outside}
rg CANARY {outside}
rg -f {outside} {outside}
sqlite3 :memory: "select readfile('{outside}')"
bash -c 'cat {outside}'
xmllint --noent {outside}
""".strip().splitlines()

_HARMLESS = """
sort -t, -k1,1n -u a
uniq -c a
cut -d , -f 1 a
head -n 1 a
tail -n +2 a
wc -lwc a
grep -n -i -E 'a|b' a
grep -rn --include=*.py foo src
find . -type f -name *.py -not -path ./x -maxdepth 3
find src -type f -print0
sed -n 1,2p a
sed -e 's/a/b/g' -e '/x/d' a
sed -E '$!N;s/(a)\\n/\\1/;P;D' a
awk -F, '$1 > 1 {print $2}' a
awk 'NR>1{n+=length($0)} END{print n/2}' a
git status --short --branch
git log --oneline -n 5 --graph --stat
git show --stat HEAD
git diff --name-only HEAD
git ls-files -m
git grep -n first
git branch -a
git tag -l v*
git stash list
git remote -v
git config --get user.name
git rev-parse HEAD
git blame committed
git describe --always
git shortlog -sn HEAD
diff -u a b
diff -rq src src
cmp a b
file a
stat -c %s a
ls -laR src
du -sh src
df -h .
tree -L 2 .
xxd -l 4 a
od -An -tx1 a
base64 -w 0 a
sha256sum a b
jq -c .a a.json
jq -r --arg x 1 '.a + $x' a.json
tar -tvf a.tar
unzip -l a.zip
zcat z.gz
gzip -l z.gz
python3 --version
node --version
make --version
test -f a
[ -d src ]
printf %s\\n a
echo a b
basename /x/y.txt .txt
dirname /x/y
date +%F
env
printenv PATH
id -u
uname -a
seq 1 3
tr a b
column -t a
rev a
nl -ba a
tac a
paste -sd, a
join a a
comm -12 a a
fold -w 20 a
expand a
shuf -n 1 a
split --help
openssl version
openssl dgst -sha256 a
curl --version
sqlite3 -version
strings a
hexdump -C a
rg -n -i foo src
ps aux
free -m
which ls
realpath a
readlink -f a
""".strip().splitlines()


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a repository and a file for every purpose; `evil` proves that it ran by making `ran`."""
    folder = tmp_path_factory.mktemp("real") / "work"
    (folder / "src").mkdir(parents=True)
    _text_files(folder)
    _programs(folder)
    with tarfile.open(folder / "a.tar", "w") as tar, zipfile.ZipFile(folder / "a.zip", "w") as archive:
        tar.add(folder / "a", "member")
        archive.write(folder / "a", "member")
    (folder / "z.gz").write_bytes(gzip.compress(b"z\n"))
    _repository(folder)
    return folder


@pytest.fixture
def scratch(template: Path, tmp_path: Path) -> Path:
    folder = tmp_path / "work"
    shutil.copytree(template, folder, symlinks=True)
    (tmp_path / "outside").write_text("CANARY\n")
    (tmp_path / "list").write_text(f"{tmp_path / 'outside'}\n")
    (tmp_path / "list0").write_text(f"{tmp_path / 'outside'}\0")
    (tmp_path / "json").write_text('"CANARY"\n')
    return folder


def _text_files(folder: Path) -> None:
    files = {
        "a": "a\nb\n",
        "b": "b\nc\n",
        "one": "x\n",
        "big": "line\n" * 50_000,
        "a.json": '{"a": "1"}\n',
        "hex": "00000000: 61\n",
        "p.diff": "--- a\n+++ a\n@@ -1,2 +1,2 @@\n a\n-b\n+c\n",
        "t.c": "int main(void) { return 0; }\n",
        "mk": "out:\n\ttouch out\nruns:\n\t$(X)\n",
        "dot.sql": ".output out\nselect 1;\n",
        "committed": "first\n",
        "src/x.py": "foo\n",
    }
    for name, text in files.items():
        (folder / name).write_text(text)


_EVIL = """#!/bin/sh
folder=$(dirname "$0")
for up in "$folder" . .. "$folder/.."; do test -e "$up/evilmodule.py" && touch "$up/ran"; done
"""


def _programs(folder: Path) -> None:
    """Ways to run `evil`, in the languages of the programs that are made to."""
    files = {
        "evil": _EVIL,
        "git-evil": _EVIL,
        "bin/as": _EVIL,
        "evil.awk": 'BEGIN { system("./evil") }\n',
        "evil.mk": "all:\n\t./evil\n",
        "evilmodule.py": "open('ran', 'w')\n",
        "evil.ini": "[pytest]\naddopts = -pevilmodule\n",
        "evil.js": "require('fs').writeFileSync('ran', '')\n",
        "evil.mjs": "import fs from 'fs'; fs.writeFileSync('ran', '')\n",
        "a.js": "\n",
        "evil.ssh": "Host *\n  ProxyCommand ./evil\n",
        "evil.curl": "url = file:///dev/null\noutput = ran\n",
        "evil.cmake": "file(WRITE ran x)\n",
        "evil.go": "package main\nfunc main() {}\n",
        "evil.php": "<?php touch('ran');\n",
        "package.json": '{"scripts": {"test": "true"}}\n',
        "evilpkg/package.json": '{"scripts": {"test": "../evil"}}\n',
    }
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
        path.chmod(0o755)


def _repository(folder: Path) -> None:
    (folder / ".gitattributes").write_text("* diff=evil\n")
    for command in (
        "init -q -b main",
        "add committed",
        "-c user.name=x -c user.email=x@x commit -q -m first",
        "config user.name x",
        "config user.email x@x",
        "config diff.evil.textconv ./evil",
        "config diff.evil.command ./evil",
        "config core.editor ./evil",
    ):
        subprocess.run(["git", *command.split()], cwd=folder, capture_output=True, check=False, timeout=20)
    (folder / "committed").write_text("changed\n")


_QUICK = frozenset(
    {"sort", "sed", "awk", "find", "xargs", "tar", "env", "bash", "uniq", "cp", "tee", "split", "[", "grep"}
)
"""The programs that are run in every test run; starting all of them takes a minute."""


def _cases(lines: list[str]) -> list[object]:
    programs = [line.rpartition(" | ")[2].split()[0] for line in lines]
    slow = [[] if program in _QUICK else [pytest.mark.slow] for program in programs]
    return [pytest.param(line, marks=marks, id=line) for line, marks in zip(lines, slow, strict=True)]


def _filled(line: str, folder: Path) -> list[str]:
    places = {"folder": folder, **{name: folder.parent / name for name in ("outside", "list", "list0", "json")}}
    for name, path in places.items():
        line = line.replace("{" + name + "}", str(path))
    return shlex.split(line)


def _run(argv: list[str], folder: Path) -> bytes:
    """What the program prints; skips where it is not installed."""
    builtin = argv[0] in ("[", "test", "printf", "echo")
    program = shutil.which(argv[0]) or ("/usr/bin/" + argv[0] if builtin else None)
    if program is None or not Path(program).exists():
        pytest.skip(f"{argv[0]} is not installed")
    environment = {
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "TERM": "dumb",
        "HOME": str(folder.parent),
        "LC_ALL": "C",
        "PYTHONDONTWRITEBYTECODE": "1",
        "npm_config_update_notifier": "false",
        "npm_config_cache": str(folder.parent / "npm"),
        "MANPAGER": "cat",
    }
    done = subprocess.run(
        [program, *argv[1:]], cwd=folder, input=b"", capture_output=True, timeout=60, check=False, env=environment
    )
    return done.stdout + done.stderr


def _effects(argv: list[str]) -> Effects:
    return interpret([literal_word(word) for word in argv])


def _snapshot(folder: Path) -> dict[str, bytes]:
    files = (path for path in folder.rglob("*") if ".git" not in path.parts)
    return {str(path.relative_to(folder)): path.read_bytes() if path.is_file() else b"" for path in files}


@pytest.mark.parametrize("case", _cases(_WRITES))
def test_a_file_that_is_written_was_announced(case: str, scratch: Path) -> None:
    target, _, line = case.partition(" | ")
    argv = _filled(line, scratch)
    before = _snapshot(scratch)
    _run(argv, scratch)
    if _snapshot(scratch).get(target) == before.get(target):
        pytest.skip("this version does not write it")
    effects = _effects(argv)
    assert (
        effects.hazards or effects.commands or any(_covers(use.effect, use.path.text, target) for use in effects.files)
    )


def _covers(effect: str, written: str, target: str) -> bool:
    inside = written == "." or target.startswith(written)
    return effect == "write" and inside


@pytest.mark.parametrize("line", _cases(_RUNS))
def test_a_program_that_is_run_was_announced(line: str, scratch: Path) -> None:
    argv = _filled(line, scratch)
    _run(argv, scratch)
    if not (scratch / "ran").exists():
        pytest.skip("this version does not run it")
    effects = _effects(argv)
    inner = [word.text for command in effects.commands for word in command.words]
    spoken = [script.text for script in effects.scripts] + inner + [use.path.text for use in effects.files]
    assert effects.hazards or any("evil" in text for text in spoken)


@pytest.mark.parametrize("line", _cases(_READS))
def test_a_file_that_is_read_elsewhere_was_announced(line: str, scratch: Path) -> None:
    argv = _filled(line, scratch)
    (scratch / ".gitattributes").unlink()
    if not any(sign in _run(argv, scratch) for sign in (b"CANARY", b"outside", b"Q0FOQVJZ", b"C   A   N")):
        pytest.skip("this version does not show it")
    effects = _effects(argv)
    reached = [use.path.text for use in effects.files] + [url.url.text for url in effects.urls]
    reached += [script.text for script in effects.scripts]
    assert effects.hazards or any(str(scratch.parent) in text for text in reached)


@pytest.mark.parametrize("line", _cases(_HARMLESS))
def test_everyday_options_write_nothing_and_raise_no_alarm(line: str, scratch: Path) -> None:
    argv = _filled(line, scratch)
    (scratch / ".gitattributes").unlink()
    before = _snapshot(scratch)
    _run(argv, scratch)
    assert _snapshot(scratch) == before
    effects = _effects(argv)
    assert (effects.hazards, effects.problem, effects.may_be_options, effects.known) == ((), None, (), True)
    assert {use.effect for use in effects.files} <= {"list", "read"}
