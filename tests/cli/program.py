"""What the tests of the program share: running it, tiny corpora, tiny models."""

import os
import pathlib
import subprocess
import tempfile
import unittest

RAPT = os.environ["RAPT_PROGRAM"]
TINY = ["--d-model", "16", "--nhead", "2", "--dim-feedforward", "32", "--layers", "1"]


def run(*arguments, stdin=b"", env=None):
    """The program's exit code, stdout and stderr; stdin is text or bytes."""
    data = stdin.encode() if isinstance(stdin, str) else stdin
    done = subprocess.run([RAPT, *map(str, arguments)], input=data, capture_output=True, timeout=300,
                          env={**os.environ, **(env or {})})
    return done.returncode, done.stdout.decode(), done.stderr.decode()


class ProgramTest(unittest.TestCase):
    """A temporary folder for each test, and assertions on runs."""

    def setUp(self):
        self.temporary = tempfile.TemporaryDirectory()
        self.folder = pathlib.Path(self.temporary.name)

    def tearDown(self):
        self.temporary.cleanup()

    def file(self, name, content):
        path = self.folder / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    def expect(self, code, *arguments, stdin=b"", says=()):
        """Runs; the exit code and every part of `says` on stderr must be right. Gives stdout."""
        got, out, err = run(*arguments, stdin=stdin)
        self.assertEqual(got, code, err)
        for part in says:
            self.assertIn(part, err)
        if code not in (0, 2):
            lines = [line for line in err.splitlines() if line.startswith("rapt: ")]
            self.assertTrue(lines, err)
        return out

    def corpus(self, source="a b c\nb c\nc a\n", target="x y z\ny z\nz x\n"):
        return self.file("a.txt", source), self.file("b.txt", target)

    def train(self, *more, out="model", source=None, target=None, code=0, says=()):
        a, b = self.corpus() if source is None else (source, target)
        self.expect(code, "train", "--source", a, "--target", b, "--out", self.folder / out, *TINY,
                    "--epochs", "2", "--quiet", *more, says=says)
        return self.folder / out
