"""Runs the commands of pages in docs and writes their output into them, or compares it with them.

    python3 ci/tour.py BINARY [--check] [PAGE…]     # docs/tour.md and docs/first-hour.md

A line `$ COMMAND` in a ```console block is a command. Bash runs it, and its output (stdout and
stderr, in the order of writing) replaces the lines up to the next command. All commands share a
home and a working folder, both empty at the start, and run in the order of the page. `zoo` is
BINARY. Each page begins with its own. No command may use the network or data outside the page.

Directives are HTML comments:

    <!-- tour: kept, REASON -->     The next block is not run and not changed: it needs data, or
                                    hours.
    <!-- tour: setup                Bash runs the lines up to `-->` without showing their output.
    LINES                           They write files for later commands. A failure ends the script.
    -->

PATTERNS replaces output that differs from run to run or from machine to machine.

Exit codes: 0, the pages are written, or equal to the output; 1, one differs (--check), or its
commands took too long; 2, the arguments or a page are invalid.
"""

import argparse
import difflib
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

DOCS = Path(__file__).resolve().parent.parent / "docs"
PAGES = [DOCS / "tour.md", DOCS / "first-hour.md"]

# The time in seconds that all commands of a page together may take.
LIMIT = 60

# (reason, pattern, replacement), applied in this order to the output of a command. `^` and `$`
# match at every line.
PATTERNS = [
    ("progress depends on the time: only the last step of a stage stays",
     r"^(?:train|read|encode|decode) .*: ([\d,]+) of (?!\1\b)[\d,]+\b.*\n", ""),
    ("a note of programs from a working tree with changes",
     r"^`zoo report` does not count .* working tree .*\n", ""),
    ("dates", r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", "<date>"),
    ("hashes of records, runs and commits", r"\b[0-9a-f]{12,64}\b", "<hash>"),
    ("processors", r"(commit <hash>)(?: with changes)?, .+$", r"\1, <processor>"),
    ("speeds of the machine", r"\([\d.,]+ [A-Z]?FLOP/s measured\)", "(<speed> measured)"),
    ("speeds of training", r"[\d.,]+ ((?:tokens|frames)/s)", r"<speed> \1"),
    ("estimated times",
     r"\babout \d+ (?:d|h|min|s)\b(?: \d+ (?:h|min|s)\b)?", "about <time>"),
    ("losses, whose last digits depend on the processor", r"\bloss \d+\.\d+", "loss <loss>"),
    ("the column `seconds` of zoo verify", r"(  (?:yes|no )  ) *\d+\.\d  ", r"\1      <s>  "),
    ("sizes of files that contain hashes and dates", r"\b[\d,]+ bytes", "<size> bytes"),
    ("norms, whose last digits depend on the processor",
     r"\bgradient norm \d+\.\d+", "gradient norm <norm>"),
    ("times of training", r"(update \d+, epoch \d+), .+ s$", r"\1, <time>"),
    ("sizes and ages of runs", r"\d+(?:\.\d+)? kB  +\d+ s$", "<size> <age>"),
]

SETUP = "<!-- tour: setup"
KEPT = re.compile(r"<!-- tour: kept, .+ -->")


class Invalid(Exception):
    """The page has an error: a line, and why."""


class Shell:
    """A home and a working folder, in which bash runs commands."""

    def __init__(self, scratch, binary):
        self.scratch = scratch
        self.work = scratch / "work"
        programs = scratch / "bin"
        for folder in (self.work, programs, scratch / "home"):
            folder.mkdir()
        (programs / "zoo").symlink_to(binary)
        keep = ("LD_LIBRARY_PATH", "TMPDIR", "USER")
        self.environment = {name: os.environ[name] for name in keep if name in os.environ}
        self.environment |= {
            "HOME": str(scratch / "home"),
            "PATH": f"{programs}:{os.environ['PATH']}",
            "LC_ALL": "C.UTF-8",
        }
        self.end = time.monotonic() + LIMIT

    def run(self, script):
        """Exit code and output of a script. Ends the program if the time is over."""
        bash = subprocess.Popen(
            ["bash", "-c", script], cwd=self.work, env=self.environment,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            output, _ = bash.communicate(timeout=max(0.0, self.end - time.monotonic()))
        except subprocess.TimeoutExpired:
            os.killpg(bash.pid, signal.SIGKILL)
            bash.wait()
            sys.exit(f"error: the commands of a page took more than {LIMIT} s, at: {script}")
        return bash.returncode, output.decode(errors="replace")

    def stable(self, output):
        """The lines of an output after PATTERNS, with `~` for the home."""
        output = output.replace(str(self.scratch / "home"), "~").replace(f"{self.work}/", "")
        for _, pattern, replacement in PATTERNS:
            output = re.sub(pattern, replacement, output, flags=re.MULTILINE)
        return [line.rstrip() for line in output.rstrip("\n").split("\n")]


def regenerated(page, shell):
    """The lines of the page with the output of every command."""
    lines = iter(enumerate(page, 1))
    made, kept = [], False
    for number, line in lines:
        made.append(line)
        if line == SETUP:
            body = until("-->", lines, number)
            made += body
            code, output = shell.run("set -e\n" + "\n".join(body[:-1]))
            if code != 0:
                raise Invalid(f"line {number}: setup ended with code {code}: {output}")
        elif line.startswith("<!-- tour:"):
            if not KEPT.fullmatch(line):
                known = "known: `kept, REASON`, `setup`"
                raise Invalid(f"line {number}: unknown directive; {known}")
            kept = True
        elif line == "```console":
            body = until("```", lines, number)
            made += body if kept else [*block(body[:-1], shell, number), body[-1]]
            kept = False
        elif kept:
            raise Invalid(f"line {number}: a console block must follow `kept`")
    return made


def until(end, lines, start):
    """The lines up to and including `end`."""
    body = []
    for _, line in lines:
        body.append(line)
        if line == end:
            return body
    raise Invalid(f"line {start}: this block has no end")


def block(body, shell, number):
    """The commands of a block, each with its output."""
    if not body or not body[0].startswith("$ "):
        raise Invalid(f"line {number}: the first line of a block must be a command, `$ …`")
    made = []
    for command in (line for line in body if line.startswith("$ ")):
        made.append(command)
        _, output = shell.run(command[2:])
        if output:
            made += shell.stable(output)
    return made


def main():
    parser = argparse.ArgumentParser(description="Write the output of commands into pages of docs.")
    parser.add_argument("binary", type=Path, help="the program that `zoo` stands for")
    parser.add_argument("pages", type=Path, nargs="*", default=PAGES, help="default: all pages")
    parser.add_argument("--check", action="store_true", help="compare; exit with 1 and a diff")
    arguments = parser.parse_args()
    binary = arguments.binary.resolve()
    if not os.access(binary, os.X_OK):
        parser.error(f"{arguments.binary} is not a program")
    return max(done(page, binary, arguments.check) for page in arguments.pages)


def done(page, binary, check):
    """Exit code of one page."""
    old = page.read_text(encoding="utf-8").split("\n")
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="zoo-tour-") as scratch:
        try:
            new = regenerated(old, Shell(Path(scratch).resolve(), binary))
        except Invalid as error:
            print(f"error: {page.name}, {error}", file=sys.stderr)
            return 2
    seconds = time.monotonic() - began
    if not check:
        page.write_text("\n".join(new), encoding="utf-8")
        print(f"{page.name}: written in {seconds:.0f} s", file=sys.stderr)
        return 0
    if new == old:
        print(f"{page.name}: equal to the output ({seconds:.0f} s)", file=sys.stderr)
        return 0
    print("\n".join(difflib.unified_diff(old, new, page.name, "output", lineterm="", n=1)))
    print(f"error: {page.name} differs from the output of its commands", file=sys.stderr)
    print("hint: if the change is intended, run `ci/tour.sh BINARY`", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
