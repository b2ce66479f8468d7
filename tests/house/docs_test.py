"""The pages point at what is there, and name commands that exist."""

import os
import pathlib
import re
import subprocess
import textwrap
import unittest

TOP = pathlib.Path(os.environ.get("RAPT_SOURCE_DIR", pathlib.Path(__file__).parents[2]))
PROGRAM = pathlib.Path(os.environ.get("RAPT_PROGRAM", TOP / "build/rapt"))

PAGES = sorted(TOP.glob("*.md")) + sorted((TOP / "docs").rglob("*.md"))
SHELL = re.compile(r"^```sh\b.*?\n(.*?)^```", re.MULTILINE | re.DOTALL)


def shell_lines():
    """(page, line) of every command in a fenced sh block."""
    for page in PAGES:
        for block in SHELL.findall(page.read_text()):
            for line in block.replace("\\\n", " ").splitlines():
                yield page.name, line.strip()


class Docs(unittest.TestCase):
    def test_every_link_to_a_file_leads_somewhere(self):
        links = 0
        for page in PAGES:
            prose = re.sub(r"^```.*?^```", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)
            for target in re.findall(r"\]\(([^)#\s]+)[^)]*\)", prose):
                if "://" not in target:
                    links += 1
                    self.assertTrue((page.parent / target).exists(), f"{page.name}: {target}")
        self.assertGreater(links, 5)

    def test_every_decision_stands_in_the_list(self):
        listed = (TOP / "docs/decisions/README.md").read_text()
        for page in (TOP / "docs/decisions").glob("0*.md"):
            self.assertIn(f"({page.name})", listed)

    def test_the_examples_stand_in_the_page_as_they_are(self):
        page = (TOP / "docs/from-pytorch.md").read_text()
        example = TOP / "examples/from_pytorch"
        for language, mark, file in (("python", "# [python]\n", "make.py"), ("c++", "// [c++]\n", "from_pytorch.cpp")):
            shown = re.findall(rf"^```{re.escape(language)}\n(.*?)^```", page, re.MULTILINE | re.DOTALL)[0]
            self.assertEqual(shown, textwrap.dedent(re.split(rf" *{re.escape(mark)}", (example / file).read_text())[1]))

    def test_run_knows_every_command_that_the_pages_give_it(self):
        usage = subprocess.run([TOP / "run", "help"], capture_output=True, text=True, check=True)
        known = set(re.findall(r"^  (\w+) ", usage.stdout, re.MULTILINE))
        given = {word for _, line in shell_lines() for word in re.findall(r"\./run (\w+)", line)}
        self.assertTrue(given and known)
        self.assertLessEqual(given, known)

    def test_run_refuses_a_command_that_it_does_not_know(self):
        done = subprocess.run([TOP / "run", "dance"], capture_output=True, text=True)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("dance", done.stderr)

    def test_the_program_knows_every_verb_and_flag_that_the_pages_give_it(self):
        helps = {}
        for page, line in shell_lines():
            command = re.search(r"\bbuild/rapt ([a-z-]+)((?: +[^|<>#&]+)*)", line)
            if not command:
                continue
            verb, rest = command.groups()
            if verb not in helps:
                done = subprocess.run([PROGRAM, verb, "--help"], capture_output=True, text=True)
                self.assertEqual(done.returncode, 0, f"{page}: rapt {verb}: {done.stderr}")
                helps[verb] = done.stdout
                for part in re.findall(r"^  (\w+) ", done.stdout.partition("Subcommands:\n")[2], re.MULTILINE):
                    helps[verb] += subprocess.run([PROGRAM, verb, part, "--help"], capture_output=True, text=True).stdout
            for flag in re.findall(r"(?<!\S)--[a-z-]+", rest):
                self.assertIn(flag, helps[verb], f"{page}: rapt {verb} {flag}")


if __name__ == "__main__":
    unittest.main()
