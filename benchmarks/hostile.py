"""Shell lines made to take long: each kind is grown until a bound refuses more of it, and tried just beyond, too."""

from collections.abc import Callable, Mapping

from ci_agent import Policy

MAX_SIZE = 300_000
"""No kind grows further: the bytes of a line are bounded too."""


def _repeat(piece: str, joint: str = "; ") -> Callable[[int], str]:
    """The piece so many times, with `#` in it replaced by its number."""
    return lambda size: joint.join(piece.replace("#", str(n)) for n in range(size))


def _nested(before: str, inner: str, after: str) -> Callable[[int], str]:
    return lambda size: before * size + inner + after * size


def _quoted_again(size: int) -> str:
    """A shell in a shell, each with its text in quotes."""
    line = "echo x"
    for _ in range(size):
        line = f"bash -c '{line.replace(chr(39), chr(39) + chr(92) + chr(39) + chr(39))}'"
    return line


def _folder_filled_and_copied(size: int) -> str:
    return "touch " + " ".join(f"src/g{n}" for n in range(3 * size)) + "; " + _repeat("cp -r src e#")(size)


MORE_FILES: Mapping[str, Callable[[int], str]] = {
    "copies of a folder that is filled": _folder_filled_and_copied,
    "copies among few folders": lambda size: "mkdir a b c; " + _repeat("cp -r a/x# b; cp -r b c; cp -r c a")(size),
    "copies from one to the next": lambda size: "".join(f"cp -r e{n} e{n + 1}; " for n in range(size)) + "touch e0/x",
    "moves of folders": _repeat("mv src d#"),
    "rsync": _repeat("rsync -r src d#"),
    "install": _repeat("install m001 d#"),
    "git mv": _repeat("git mv f# g#"),
    "dd": _repeat("dd if=f# of=o#"),
    "symbolic links": _repeat("ln -s f# g#"),
    "symbolic links that are used": _repeat("ln -s a# l#; cat l#/x"),
    "tee": lambda size: "tee " + " ".join(f"o{n}" for n in range(size)),
    "redirections of commands": _repeat("cat f# > o# 2> e#"),
    "archives of everything": _repeat("tar cf o#.tar ."),
    "unpacking": _repeat("tar xf a#.tar -C d#"),
    "zip of a folder": _repeat("zip -r o#.zip src"),
    "owners of all in a folder": _repeat("chown -R a src"),
    "comparisons of folders": _repeat("diff -r src d#"),
    "reads of a folder of links": _repeat("grep -r a# links"),
    "paths through links": lambda size: "cat " + " ".join(f"c39/x{n}" for n in range(size)),
    "paths through a loop of links": _repeat("cat loop/f#"),
    "programs through links": _repeat("./c39/prog a#"),
    "folders that exist": lambda size: "prog " + " ".join("deep/" + "d/" * n for n in range(size)),
    "deep files": lambda size: "cat " + " ".join(f"deep/{'d/' * 20}f{n}" for n in range(size)),
    "reads of files with two names": lambda size: "cat " + " ".join(f"h{n:03}" for n in range(size)),
    "writes of files with two names": _repeat("echo x > h0#"),
    "copies of a deep folder": _repeat("cp -r deep l#"),
    "rsync of a deep folder": _repeat("rsync -a deep/ l#"),
    "copies of a folder of links": _repeat("cp -rL links l#"),
    "copies into a folder that is made": lambda size: (
        "mkdir dst; cp " + " ".join(f"m{n:03}" for n in range(size)) + " dst; cp -r dst e"
    ),
    "tar of folders": _repeat("tar czf o#.tgz src"),
    "find with the ending of names": _repeat("find . -name 'a#*.py' -type f"),
    "reads of one ending": _repeat("grep -r --include=*.py a# ."),
    "globs of links": lambda size: "cat " + " ".join("links/*" for _ in range(size)),
}
"""Of the folder as benchmarks/policy.py fills it."""

MORE_COMMANDS: Mapping[str, Callable[[int], str]] = {
    "find -exec {}": _repeat("find d# -exec cat {} ';'"),
    "find -exec over everything": _repeat("find . -exec grep x# {} +"),
    "find -exec sh -c": _repeat("find . -exec sh -c 'cat \"$1\"' _ {} ';'"),
    "find into xargs": _repeat("find . -name 'a#' -print0 | xargs -0 cat"),
    "git ls-files into xargs": _repeat("git ls-files | xargs cat"),
    "xargs -I": _repeat("xargs -I{} cp {} d#"),
    "lists of files in a loop": lambda size: "for f in $(git ls-files); do " + "cat $f; " * size + "done",
    "lines of files in a loop": lambda size: "find . | while IFS= read -r f; do " + 'cat "$f"; ' * size + "done",
    "a long pipeline into xargs": lambda size: "find . | " + "sort | " * size + "xargs cat",
    "odd names that are made and taken": lambda size: (
        "touch " + " ".join(f"'a b{n}'" for n in range(size)) + _repeat("; ls | xargs cat", "")(size)
    ),
    "loops that choose a subcommand": lambda size: (
        "for a in log show diff status; do for b in -p -s -n -q; do for c in a b c d; do "
        + "git $a $b $c; " * size
        + "done; done; done"
    ),
    "assignments before each command": _repeat("A=1 B=2 C=3 D=4 prog#"),
    "env before each command": _repeat("env A=1 B=2 C=3 prog#"),
    "here-documents with substitutions": _repeat("cat <<E#\n$(cat f#)\nE#", "\n"),
    "a product of braces": lambda size: "cat " + "{a,b}" * size,
    "products of braces": lambda size: "cat " + " ".join(f"{{a,b,c}}{{d,e,f}}{{g,h,i}}{n}" for n in range(size)),
    "a sequence in braces": lambda size: f"cat f{{1..{size}}}",
    "case with many patterns": lambda size: f"case $x in {'|'.join(f'a{n}*' for n in range(size))}) cat f;; esac",
    "case with many arms": lambda size: f"case $x in {' '.join(f'a{n}) cat f{n};;' for n in range(size))} esac",
    "elif": lambda size: "if true; then true; " + _repeat("elif test -f f#; then cat f#; ", "")(size) + "fi",
    "functions that call each other": lambda size: (
        "".join(f"f{n}() {{ f{n - 1}; cat a; }}; " for n in range(1, size + 1)) + f"f{size}"
    ),
    "sh -c in sh -c": _repeat("sh -c \"sh -c 'cat f#'\""),
    "hosts beyond ASCII": lambda size: "curl " + " ".join(f"https://ä{n}.example.org" for n in range(size)),
    "hosts that are addresses": lambda size: (
        "curl " + " ".join(f"http://10.{n % 256}.{n // 256}.1/" for n in range(size))
    ),
    "awk expressions": lambda size: "awk '{ x = " + "1+" * size + "1 }' f",
    "awk patterns": lambda size: "awk '" + "/a/ { print $1 }\n" * size + "' f",
    "git diff": _repeat("git diff HEAD~# -- a# b#"),
    "git ls-files into xargs -0": _repeat("git ls-files -z | xargs -0 -n1 wc -l"),
    "pytest": lambda size: "pytest " + " ".join(f"tests/t{n}.py::test_a" for n in range(size)),
    "scripts of python": _repeat("python3 s#.py a b"),
    "requirements": _repeat("pip install -r r#.txt"),
    "containers": _repeat("docker run --rm -v ./a#:/b# img cmd"),
    "launchers in xargs": _repeat("echo a | xargs -n1 timeout 5 cat f#"),
    "find -exec sh -c with many commands": lambda size: (
        "find . -exec sh -c '" + "; ".join(f'cat "$1" f{n}' for n in range(size)) + "' _ {} ';'"
    ),
    "find -exec sh -c with many copies": lambda size: (
        "find . -exec sh -c '" + "; ".join(f'cp "$1" f{n}' for n in range(size)) + "' _ {} ';'"
    ),
    "shells in a shell, many commands": lambda size: (
        "sh -c 'sh -c \"" + "; ".join(f"cat f{n}" for n in range(size)) + "\"'"
    ),
    "env -S": lambda size: "env -S '" + "A=1 " * size + "cat f'",
    "hosts that are addresses of six": lambda size: (
        "curl " + " ".join(f"'http://[2001:db8::{n:x}]/'" for n in range(size))
    ),
    "downloads": _repeat("curl -o o# https://h#.example.org/"),
    "loops in a case": lambda size: (
        "for i in a b c; do case $i in " + " ".join(f"a{n}|b{n}) cat f{n};;" for n in range(size)) + " esac; done"
    ),
    "an array of files": lambda size: (
        "a=(" + " ".join(f"f{n}" for n in range(size)) + '); for f in "${a[@]}"; do cat $f; done'
    ),
    "sed groups": lambda size: "sed -n '" + "/a/{p;" * size + "}" * size + "' f",
}

SCRIPTS: Mapping[str, Callable[[int], str]] = {
    "calls of a function": lambda size: 'f() { cat "$1"; wc "$@"; }; ' + _repeat("f a# b#")(size),
    "functions that call functions": lambda size: (
        'f() { cat "$1"; }; g() { f "$1"; f x; }; h() { g "$1"; g y; }; ' + _repeat("h a#")(size)
    ),
    "arrays that may be longer": lambda size: (
        "a=(x); " + _repeat("test -f z# && a+=(y#)")(4) + "; " + _repeat('cat q# "${a[@]}"')(size)
    ),
    "elements by name": lambda size: (
        "declare -A m; " + _repeat("m[k#]=v#")(size) + '; for k in "${!m[@]}"; do cat "${m[$k]}"; done'
    ),
    "arguments set anew": _repeat('set -- a# b c d; cat "$@"'),
    "an array that grows": lambda size: "a=(); " + _repeat("a+=(x#)")(size) + '; cat "${a[@]}"',
    "values with a part replaced": lambda size: "x=abc; " + _repeat('cat "${x//a/b}#"')(size),
    "traps": _repeat("trap 'rm a#' EXIT"),
    "values glued to options": lambda size: "prog " + _repeat("-xo/etc/x#", " ")(size),
    "addresses glued to options": lambda size: "prog " + _repeat("a=b=http://h#", " ")(size),
    "operands beneath no folder": lambda size: "prog " + _repeat("no/d#/x", " ")(size),
    "programs of an environment": _repeat(".venv/bin/python x#.py a b"),
}

IN_A_REPOSITORY: Mapping[str, Callable[[int], str]] = {
    "git diff -- .": _repeat("git diff HEAD~# -- ."),
    "git diff with an exclusion": _repeat("git diff HEAD -- src ':!x#'"),
    "git diff with many": lambda size: "git diff HEAD -- . " + _repeat("':!x#/*'", " ")(size),
    "git diff": _repeat("git diff"),
    "git log of a revision": _repeat("git log HEAD~#"),
    "git log -p": _repeat("git log -p -- src/d#"),
    "git show": _repeat("git show HEAD~# -- a#"),
    "git grep": _repeat("git grep x# -- src"),
    "git add -A": _repeat("git add -A"),
    "git add": _repeat("git add src/d#"),
    "git restore": _repeat("git restore a#"),
    "git stash": _repeat("git stash -u"),
    "git reset": _repeat("git reset --hard HEAD~#"),
    "git clean": _repeat("git clean -fd src/d#"),
    "git ls-files into xargs": _repeat("git ls-files src/d# | xargs cat"),
    "the top of the tree": _repeat('cat "$(git rev-parse --show-toplevel)/f#"'),
    "docker build": _repeat("docker build -t a# ."),
    "rg": _repeat("rg a# src"),
    "an unknown program over folders": _repeat("prog src/d#"),
    "launchers for all packages": _repeat("pnpm -r exec cat a#"),
}

HOSTILE: Mapping[str, Callable[[int], str]] = {
    # Many commands.
    "the same command": _repeat("true"),
    "different unknown programs": _repeat("prog# a"),
    "different programs that a rule names": _repeat("tool# run a"),
    "programs spelled as paths": _repeat("./bin#/prog a"),
    "git log": _repeat("git log --oneline -# a#"),
    "git -C": _repeat("git -C src log -# a#"),
    "ls of files": _repeat("ls f#"),
    "rm of files": _repeat("rm f#"),
    "cp of files": _repeat("cp a# b#"),
    "pipeline": _repeat("sort -k# f#", " | "),
    "cd between commands": _repeat("cd d# && ls f#", " && "),
    "and-or list": _repeat("grep a# f#", " || "),
    "groups": _repeat("{ wc f#; }"),
    "subshells": _repeat("(wc f#)"),
    "if": _repeat("if test -f f#; then cat f#; fi"),
    "functions": _repeat("f#() { cat f#; }"),
    "loops": _repeat("for i in a# b#; do cat $i; done"),
    "case": _repeat("case $x in a#) cat f#;; esac"),
    "[[ ]]": _repeat("[[ -f f# ]]"),
    "arithmetic": _repeat("echo $((1+#))"),
    # Many words, redirections, assignments.
    "cat of many files": lambda size: "cat " + " ".join(f"f{n}" for n in range(size)),
    "cat of many deep files": lambda size: "cat " + " ".join(f"a/b/c/d/e/f/g/h/f{n}" for n in range(size)),
    "rm -r of many files": lambda size: "rm -r " + " ".join(f"f{n}" for n in range(size)),
    "cp of many files into a folder": lambda size: "cp " + " ".join(f"f{n}" for n in range(size)) + " src",
    "mv of many files that are there": lambda size: "mv " + " ".join(f"m{n:03}" for n in range(size)) + " src",
    "words of an unknown program": lambda size: "prog " + " ".join(f"f{n}" for n in range(size)),
    "paths of an unknown program": lambda size: "prog " + " ".join(f"a/b{n}" for n in range(size)),
    "options of an unknown program": lambda size: "prog " + " ".join(f"--a{n}=b/c{n}" for n in range(size)),
    "paths in many folders of an unknown program": lambda size: "prog " + " ".join(f"a{n}/b" for n in range(size)),
    "paths outside of an unknown program": lambda size: "prog " + " ".join(f"/etc/b{n}" for n in range(size)),
    "lists of an unknown program": lambda size: "prog " + " ".join(f"a{n},b{n}:c{n}=d{n}" for n in range(size)),
    "options": lambda size: "grep " + " ".join("-n" for _ in range(size)) + " x f",
    "a cluster of options": lambda size: "grep -" + "nivwxHrs" * size + " x f",
    "files to read by option": lambda size: "grep " + " ".join(f"-f p{n}" for n in range(size)) + " f",
    "sed scripts": lambda size: "sed " + " ".join(f"-e s/a{n}/b{n}/" for n in range(size)) + " f",
    "one long sed script": lambda size: "sed '" + "s/a/b/;" * size + "' f",
    "one long sed script with brackets": lambda size: "sed '" + "s/[a]/b/;" * size + "' f",
    "short commands of sed, read twice": lambda size: "sed 's/[\\n]/b/;" + "p" * size + "' f",
    "one long awk program": lambda size: "awk '" + "{ x = y + 1 } " * size + "' f",
    "one long jq program": lambda size: "jq '" + ".a | " * size + ".b' f",
    "python -c": lambda size: "python3 -c '" + "x = 1\n" * size + "'",
    "curl of many addresses": lambda size: "curl " + " ".join(f"https://h{n}.example.org/a" for n in range(size)),
    "redirections": lambda size: "cat " + " ".join(f"> f{n}" for n in range(size)),
    "redirections of reads": lambda size: "cat " + " ".join(f"< f{n}" for n in range(size)),
    "assignments": _repeat("V#=x"),
    "assignments that build on each other": lambda size: "V=x; " + "V=${V}a; " * size + "echo $V",
    "assignments before one command": lambda size: " ".join(f"V{n}=x" for n in range(size)) + " true",
    "array": lambda size: "a=(" + " ".join(f"x{n}" for n in range(size)) + ")",
    "variables in words": lambda size: "V=x; echo " + " ".join("$V" for _ in range(size)),
    "unknown variables in words": lambda size: "echo " + " ".join(f"$V{n}" for n in range(size)),
    "exports": _repeat("export V#=x"),
    # Globs.
    "globs that match nothing": lambda size: "ls " + " ".join(f"a{n}*" for n in range(size)),
    "recursive reads": _repeat("grep -r a# ."),
    "recursive deletions": _repeat("rm -r ."),
    "recursive copies": _repeat("cp -r src d#"),
    "globs that match much": lambda size: "ls " + " ".join("m*" for _ in range(size)),
    "globs in folders": lambda size: "ls " + " ".join("*/*" for _ in range(size)),
    "a glob with many stars": lambda size: "ls " + "*a" * size + "*b",
    "globs with many stars": lambda size: "ls " + " ".join("*a*a*a*a*b" for _ in range(size)),
    "globs of an unknown program": lambda size: "prog " + " ".join(f"m{n:02}*" for n in range(size)),
    "globs in commands": _repeat("ls m#*"),
    "braces": lambda size: "echo " + "{a,b}" * size,
    "one brace": lambda size: "echo {" + ",".join(f"a{n}" for n in range(size)) + "}",
    "loop over many names": lambda size: "for f in " + " ".join(f"f{n}" for n in range(size)) + "; do rm $f; done",
    "loop over few names, many commands": lambda size: "for f in a b c d e f g h; do " + "cat $f; " * size + "done",
    "loop that enters folders": lambda size: "for f in a b c d e f g h; do cd $f && ls " + "x " * size + "; done",
    "loops in loops": lambda size: (
        "".join(f"for v{n} in a b c d e f; do " for n in range(size))
        + "cat "
        + " ".join(f"$v{n}" for n in range(size))
        + "; done" * size
    ),
    # Text.
    "one long word": lambda size: "echo " + "x" * size,
    "one long path": lambda size: "cat " + "a/" * size + "b",
    "one path that climbs": lambda size: "cat " + "a/../" * size + "b",
    "many long paths": lambda size: "cat " + " ".join(f"{'a/' * 2000}{n}" for n in range(size)),
    "one long word of an unknown program": lambda size: "prog " + "x" * size,
    "one long word of slashes": lambda size: "prog " + "a/" * size,
    "one long quoted word": lambda size: "echo '" + "x y " * size + "'",
    "quoted words": lambda size: "echo " + "'it'\"s\"\\ fine " * size,
    "quotes in a word": lambda size: "echo " + "'a'\"b\"" * size,
    "unclosed quotes": lambda size: "echo " + "'a\"b" * size,
    "line breaks": lambda size: "\n" * size + "true",
    "blanks": lambda size: " " * size + "true",
    "comments": lambda size: "# x\n" * size + "true",
    "escaped line breaks": lambda size: "true " + "\\\n" * size,
    "letters beyond ASCII": lambda size: "echo '" + "ä" * size + "'",
    "here-documents": _repeat("cat <<E#\nbody\nE#", "\n"),
    "one long here-document": lambda size: "cat <<E\n" + "line\n" * size + "E\n",
    "here-document with variables": lambda size: "cat <<E\n" + "$V\n" * size + "E\n",
    "substitutions": _repeat("echo $(cat f#)"),
    "substitutions in one word": lambda size: "echo " + "$(true)" * size,
    "backticks": _repeat("echo `cat f#`"),
    "process substitutions": lambda size: "cat " + " ".join(f"<(cat f{n})" for n in range(size)),
    # Nesting.
    "nested substitutions": _nested("echo $(", "true", ")"),
    "nested substitutions of files": _nested("cat f $(", "true", ")"),
    "nested subshells": _nested("( ", "true", " )"),
    "nested groups": _nested("{ ", "true", "; }"),
    "nested ifs": _nested("if true; then ", "true", "; fi"),
    "nested loops": _nested("while true; do ", "true", "; done"),
    "nested functions": _nested("f() { ", "true", "; }"),
    "nested parameter expansions": _nested("echo ${a:-", "x", "}"),
    "nested braces": lambda size: "echo " + "{a," * size + "b" + "}" * size,
    "nested arithmetic": lambda size: "echo $((" + "(" * size + "1" + ")" * size + "))",
    "nested launchers": _nested("xargs ", "rm x", ""),
    "nested launchers that need no rule": _nested("nice ", "rm x", ""),
    "nested timeouts": _nested("timeout 5 ", "rm x", ""),
    "nested env": _nested("env A=b ", "rm x", ""),
    "nested find": lambda size: "find . -exec " * size + "rm x" + " ';'" * size,
    "nested launchers, many words": lambda size: "xargs " * 20 + "prog " + " ".join(f"f{n}" for n in range(size)),
    "launchers, many commands": _repeat("xargs xargs xargs xargs cat f#"),
    "shells in shells": _quoted_again,
    "eval": _repeat("eval 'cat f#'"),
    "eval of evals": lambda size: "eval eval eval eval eval '" + "; ".join(f"cat f{n}" for n in range(size)) + "'",
    "sh -c": _repeat("sh -c 'cat f#'"),
    "sh -c with many commands": lambda size: "sh -c '" + "; ".join(f"cat f{n}" for n in range(size)) + "'",
    "many scripts of many commands": lambda size: "; ".join(["sh -c '" + "true; " * 20 + "'"] * size),
    "find with many actions": lambda size: "find . " + " ".join(f"-exec cat f{n} ';'" for n in range(size)),
    "find with many roots": lambda size: "find " + " ".join(f"d{n}" for n in range(size)) + " -delete",
    "find with many tests": lambda size: "find . " + " ".join(f"-name 'a{n}'" for n in range(size)),
    "tar of many members": lambda size: "tar xf a.tar " + " ".join(f"m{n}" for n in range(size)),
    "git add of many files": lambda size: "git add " + " ".join(f"f{n}" for n in range(size)),
    "git pathspecs": lambda size: "git log -- " + " ".join(f":(glob)a{n}/**" for n in range(size)),
    "pip install": lambda size: "pip install " + " ".join(f"p{n}@1" for n in range(size)),
    "make variables": lambda size: "make " + " ".join(f"V{n}=x" for n in range(size)),
    "test with many operands": lambda size: "test " + " -o ".join(f"-f f{n}" for n in range(size)),
    **MORE_FILES,
    **MORE_COMMANDS,
    **SCRIPTS,
}


def grow(policy: Policy, make: Callable[[int], str]) -> tuple[str, str]:
    """The line of the greatest size that no bound refuses, and one that is refused."""
    low, high = 1, 2
    while high < MAX_SIZE and not _is_refused(policy, make(high)):
        low, high = high, high * 2
    while high - low > max(1, low // 50):
        middle = (low + high) // 2
        low, high = (low, middle) if _is_refused(policy, make(middle)) else (middle, high)
    return make(low), make(high)


def _is_refused(policy: Policy, line: str) -> bool:
    return len(line) > MAX_SIZE or policy.decide("bash", {"command": line}).code == "limit"
