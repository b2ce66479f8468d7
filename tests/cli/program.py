"""What the tests of the program share: running it, text files and small models."""

import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

SOURCE = pathlib.Path(os.environ["RAPT_SOURCE_DIR"])
GOLDEN = SOURCE / "tests" / "golden"
sys.path.insert(0, str(GOLDEN))

import safetensors_file  # noqa: E402

PROGRAM = os.environ["RAPT_PROGRAM"]
# What would change what the program does, if whoever runs the tests had it set.
CLEAN = {k: v for k, v in os.environ.items()
         if k != "NO_COLOR" and not (k.startswith("RAPT_") and k not in ("RAPT_FONT", "RAPT_DATA_DIR"))}

# A model that trains in milliseconds.
TINY = ["--d-model", "16", "--nhead", "2", "--dim-feedforward", "32", "--layers", "1", "--max-len", "12",
        "--warmup", "0", "--epochs", "2"]

# What a run's folder has beside the model.
RUN_FILES = {"checkpoints", "metrics.jsonl", "train.yaml", "events.out.tfevents.0.rapt"}

SOURCE_TEXT = "a b c\nb c\nc a a\na\nb b a c\n"
TARGET_TEXT = "x y z\ny z\nz x x\nx\ny y x z\n"


class Result:
    def __init__(self, code, out, err):
        self.code, self.bytes, self.err = code, out, err.decode()

    @property
    def out(self):
        return self.bytes.decode()  # what the program prints is always UTF-8

    @property
    def lines(self):
        return self.out.split("\n")[:-1]

    def __repr__(self):
        return f"exit {self.code}\nstdout: {self.bytes!r}\nstderr: {self.err}"


def rapt(*arguments, stdin=b"", env=None, cwd=None, timeout=300):
    done = subprocess.run([PROGRAM, *map(str, arguments)], input=stdin.encode() if isinstance(stdin, str) else stdin,
                          capture_output=True, env={**CLEAN, **(env or {})}, cwd=cwd, timeout=timeout)
    return Result(done.returncode, done.stdout, done.stderr)


class TestCase(unittest.TestCase):
    """A test with a folder of its own, self.folder."""

    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="rapt-cli-"))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)

    def file(self, name, content):
        path = self.folder / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    def train(self, *flags, source=SOURCE_TEXT, target=TARGET_TEXT, out="model", **how):
        """Trains a tiny model; flags that are given win."""
        return rapt("train", "--source", self.file("source.txt", source), "--target", self.file("target.txt", target),
                    "--out", self.folder / out, "--restart", *TINY, *flags, **how)

    def model(self, *flags, **how):
        result = self.train(*flags, **how)
        self.assertEqual(result.code, 0, result)
        return self.folder / how.get("out", "model")

    def assert_fails(self, result, code, *words):
        """One clear line, then at most a hint on usage; nothing on stdout."""
        self.assertEqual(result.code, code, result)
        self.assertEqual(result.bytes, b"", result)
        complaints = [line for line in result.err.splitlines() if line.startswith("rapt: ")]
        self.assertEqual(len(complaints), 1, result)
        for word in words:
            self.assertIn(word, complaints[0])

    def assert_alike(self, ours, theirs, tolerance, scale=None):
        """Tensors (dtype, shape, bytes) that differ by at most `tolerance` of the largest value."""
        self.assertEqual(ours[1], theirs[1])
        a, b = safetensors_file.values(ours), safetensors_file.values(theirs)
        largest = max(map(abs, b), default=0) if scale is None else scale
        worst = max((abs(x - y) for x, y in zip(a, b)), default=0)
        self.assertLessEqual(worst, tolerance * largest)


def snapshot(folder):
    """The files of a folder with what they hold; of a run's folder, those of its model."""
    return {path.name: path.read_bytes() for path in pathlib.Path(folder).iterdir()
            if path.name not in RUN_FILES}


def edit_config(model, **changes):
    """Sets fields of config.json; None removes one."""
    path = model / "config.json"
    config = {**json.loads(path.read_text()), **changes}
    path.write_text(json.dumps({key: value for key, value in config.items() if value is not None}))
