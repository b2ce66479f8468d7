#!/usr/bin/env python3
"""Runs the README's commands, as a reader would type them one after the other.

    tools/check_readme.py [PAGE]

Runs every line of the fenced `sh` blocks that use `build/rapt`, in the project's folder, with their
redirections; what an earlier call wrote under /tmp/rapt is removed first. Other blocks (./run, cmake) are for the
reader's machine, and `./run check` is itself one of them. Exit 1 at the first command that fails.
"""

import pathlib
import re
import shutil
import subprocess
import sys

TOP = pathlib.Path(__file__).parent.parent


def commands(page):
    for block in re.findall(r"^```sh\b.*?\n(.*?)^```", page.read_text(), re.MULTILINE | re.DOTALL):
        if "build/rapt " not in block:
            continue
        for line in block.replace("\\\n", " ").splitlines():
            if line.strip() and not line.lstrip().startswith("#"):
                yield line.strip()


def main(arguments):
    page = pathlib.Path(arguments[0]) if arguments else TOP / "README.md"
    found = list(commands(page))
    shutil.rmtree("/tmp/rapt", ignore_errors=True)
    for command in found:
        print(f"$ {command}", flush=True)
        done = subprocess.run(["bash", "-c", command], cwd=TOP, stdin=subprocess.DEVNULL)
        if done.returncode != 0:
            print(f"{page.name}: this command failed with {done.returncode}: {command}")
            return 1
    print(f"{len(found)} commands of {page.name} ran")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
