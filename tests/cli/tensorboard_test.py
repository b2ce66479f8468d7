"""TensorBoard's event files of a run: what metrics.jsonl has, record by record."""

import json
import subprocess
import time
import unittest

import event_file
from program import CLEAN, PROGRAM, SOURCE_TEXT, TARGET_TEXT, TINY, TestCase, rapt

RUN = [*TINY, "--epochs", "3", "--batch-tokens", "16", "--save-every", "4", "--log-every", "1"]
TAGS = {"train/loss": "loss", "train/learning_rate": "learning_rate", "train/gradient_norm": "gradient_norm",
        "train/tokens_per_s": "tokens_per_s", "valid/loss": "valid_loss", "valid/perplexity": "valid_perplexity",
        "valid/bleu": "valid_bleu", "valid/chrf": "valid_chrf"}


class Checksum(unittest.TestCase):
    def test_the_readers_is_castagnolis(self):  # RFC 3720, B.4
        self.assertEqual(event_file.crc32c(b"123456789"), 0xE3069283)
        self.assertEqual(event_file.crc32c(bytes(32)), 0x8A9136AA)


class TensorBoard(TestCase):
    def setUp(self):
        super().setUp()
        source, target = self.file("source.txt", SOURCE_TEXT * 10), self.file("target.txt", TARGET_TEXT * 10)
        self.arguments = ["train", "--source", source, "--target", target, "--valid-source", source, "--valid-target", target,
                          "--valid-metric", "bleu", *RUN]

    def events(self, out):
        """Those of the run's one file, without the first, which says the version."""
        files = list((self.folder / out).glob("*tfevents*"))
        self.assertEqual(len(files), 1)
        first, *events = event_file.read(files[0])
        self.assertEqual((first["version"], first["step"], first["values"]), ("brain.Event:2", 0, {}))
        for event in [first, *events]:
            self.assertLess(abs(event["wall_time"] - time.time()), 3600)
        return events

    def assert_as_the_metrics(self, out):
        lines = [json.loads(line) for line in (self.folder / out / "metrics.jsonl").read_text().splitlines()]
        events = self.events(out)
        self.assertEqual([event["step"] for event in events], [line["step"] for line in lines])
        for event, line in zip(events, lines):
            self.assertEqual(set(event["values"]), {tag for tag, name in TAGS.items() if name in line})
            for tag, value in event["values"].items():
                self.assertLessEqual(abs(value - line[TAGS[tag]]), 0.06 if tag == "train/tokens_per_s" else 1e-6 * abs(value))

    def test_have_every_number_of_the_metrics(self):
        self.assertEqual(rapt(*self.arguments, "--out", self.folder / "run").code, 0)
        self.assert_as_the_metrics("run")
        tags = set().union(*(event["values"] for event in self.events("run")))
        self.assertEqual(tags, set(TAGS))

    def test_a_run_killed_again_and_again_has_every_step_once(self):
        out = self.folder / "run"
        for turn in range(200):
            running = subprocess.Popen([PROGRAM, *map(str, self.arguments), "--out", out, "--resume", "--quiet"], env=CLEAN)
            try:
                running.wait(timeout=0.03 + turn * 0.01)
                break
            except subprocess.TimeoutExpired:
                running.kill()
                running.wait()
            for path in out.glob("*tfevents*"):  # a torn tail, as a power cut leaves it
                with path.open("ab") as file:
                    file.write(b"\x18\0\0\0\0\0\0\0torn")
        self.assertGreater(turn, 0)
        self.assertEqual(running.returncode, 0)
        self.assert_as_the_metrics("run")

    def test_can_be_switched_off_by_flag_file_and_variable(self):
        config = self.file("c.yaml", "tensorboard: false\n")
        for how, env in ((["--no-tensorboard"], {}), ([config], {}), (["--set", "tensorboard=false"], {}),
                         ([], {"RAPT_TENSORBOARD": "false"})):
            result = rapt(*self.arguments, *how, "--out", self.folder / "run", "--restart", env=env)
            self.assertEqual(result.code, 0, result)
            self.assertEqual(list((self.folder / "run").glob("*tfevents*")), [])
        self.assertEqual(rapt(*self.arguments, config, "--tensorboard", "--out", self.folder / "run", "--restart").code, 0)
        self.assert_as_the_metrics("run")


if __name__ == "__main__":
    unittest.main()
