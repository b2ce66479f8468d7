"""Runs that stop and go on: the same bits at the end, and what is said of runs that cannot."""

import json
import os
import random
import signal
import subprocess
import time
import unittest

from program import CLEAN, PROGRAM, SOURCE_TEXT, TARGET_TEXT, TINY, TestCase, rapt, snapshot

# Three epochs of 20 steps, saved every 4.
LINES = 10
RUN = [*TINY, "--epochs", "3", "--batch-tokens", "16", "--save-every", "4", "--schedule", "cosine", "--log-every", "1"]


class Resume(TestCase):
    def setUp(self):
        super().setUp()
        self.source = self.file("source.txt", SOURCE_TEXT * LINES)
        self.target = self.file("target.txt", TARGET_TEXT * LINES)

    def arguments(self, out, *flags):
        return ["train", "--source", self.source, "--target", self.target, "--out", self.folder / out, *RUN, *flags]

    def metrics(self, out):
        """The lines, without what a clock says."""
        lines = [json.loads(line) for line in (self.folder / out / "metrics.jsonl").read_text().splitlines()]
        return [{key: value for key, value in line.items() if key not in ("seconds", "tokens_per_s")} for line in lines]

    def whole(self, *flags):
        result = rapt(*self.arguments("whole", *flags))
        self.assertEqual(result.code, 0, result)
        return snapshot(self.folder / "whole")

    def stop(self, out, number, *flags):
        """Begins a run and stops it by a signal once it has begun."""
        running = subprocess.Popen([PROGRAM, *map(str, self.arguments(out, "--epochs", "100000", *flags))],
                                   stderr=subprocess.PIPE, env=CLEAN)
        while not running.stderr.readline().startswith(b"epoch"):
            pass
        running.send_signal(number)
        return running, running.communicate(timeout=60)[1]

    def test_R21_killed_again_and_again_it_ends_as_the_unbroken_run(self):
        flags = ("--valid-source", self.source, "--valid-target", self.target, "--average", "2", "--ema", "0.9")
        whole = self.whole(*flags, "--threads", "1")
        delays, kills = random.Random(21), 0
        for turn in range(500):
            running = subprocess.Popen([PROGRAM, *map(str, self.arguments("run", *flags, "--resume")), "--quiet"], env=CLEAN)
            try:
                running.wait(timeout=delays.uniform(0, 0.4) + turn * 0.01)
                break
            except subprocess.TimeoutExpired:
                running.kill()
                running.wait()
                kills += 1
        self.assertEqual(running.returncode, 0)
        self.assertGreater(kills, 0)
        self.assertTrue(snapshot(self.folder / "run") == whole)
        self.assertEqual(self.metrics("run"), self.metrics("whole"))
        self.assertEqual([str(p) for p in (self.folder / "run").rglob("*.tmp")], [])

    def test_signals_save_and_the_run_goes_on_with_its_own_flags(self):
        for number, code in ((signal.SIGINT, 130), (signal.SIGTERM, 143)):
            out = f"run{code}"
            running, err = self.stop(out, number, "--schedule", "constant")
            self.assertEqual(running.returncode, code, err)
            self.assertIn(b"go on with: rapt train --resume", err)
            self.assertEqual(rapt("translate", self.folder / out, stdin="a b\n").code, 0)
            done = len(self.metrics(out))
            go_on = rapt("train", "--resume", self.folder / out, "--epochs", done // 10 + 2, cwd="/")
            self.assertEqual(go_on.code, 0, go_on)
            self.assertIn(f"going on from step {self.metrics(out)[done - 1]['step']}", go_on.err)
            self.assertGreater(len(self.metrics(out)), done)

    def test_a_run_that_has_stopped_is_not_lost_unasked(self):
        self.stop("run", signal.SIGINT, "--schedule", "constant")
        self.assert_fails(rapt(*self.arguments("run")), 2, "--resume", "--restart")
        self.assertEqual(rapt(*self.arguments("run", "--restart")).code, 0)
        self.assertEqual(snapshot(self.folder / "run"), self.whole())

    def test_a_run_that_has_ended_is_not_lost_unasked(self):
        whole = self.whole()
        self.assert_fails(rapt(*self.arguments("whole")), 2, "ended there", "--out", "--resume", "--restart")
        self.assertEqual(snapshot(self.folder / "whole"), whole)
        self.assertEqual(rapt(*self.arguments("whole", "--restart")).code, 0)
        self.assertEqual(snapshot(self.folder / "whole"), whole)

    def test_the_end_says_which_model_was_written(self):
        result = rapt(*self.arguments("run"))
        last = self.metrics("run")[-1]["step"]
        self.assertIn(f"after {last} steps: the last model, of step {last}\n", result.err)
        valid = ("--valid-source", self.folder / "source.txt", "--valid-target", self.folder / "target.txt")
        result = rapt(*self.arguments("best", *valid, "--valid-every", "20", "--steps", "40"))
        self.assertRegex(result.err, r"after 40 steps: the best model, of step (20|40)\n")
        result = rapt(*self.arguments("mean", "--save-every", "10", "--average", "3", "--steps", "40"))
        self.assertIn("after 40 steps: the mean of the checkpoints of steps 40, 30, 20\n", result.err)

    def test_resume_names_the_limit_that_ended_the_run(self):
        for flag, value in (("--steps", "7"), ("--epochs", "2"), ("--minutes", "0.00001")):
            out = flag[2:]
            rapt(*self.arguments(out, flag, value))
            result = rapt("train", "--resume", self.folder / out)
            self.assertEqual(result.code, 0, result)
            self.assertIn(f"by {flag}; raise that to go on", result.err)

    def test_resume_begins_where_nothing_was_saved_and_says_so_at_the_end(self):
        result = rapt(*self.arguments("run", "--resume"))
        self.assertEqual(result.code, 0, result)
        self.assertIn("no checkpoint yet", result.err)
        again = rapt("train", "--resume", self.folder / "run")
        self.assertEqual(again.code, 0, again)
        self.assertIn("the run had ended at step", again.err)
        self.assert_fails(rapt("train", "--resume", self.folder / "none"), 4, "none", "no run to go on with")
        self.assert_fails(rapt("train", "--resume"), 2, "--resume: expected DIR after it, or --out DIR")

    def test_changed_files_and_flags_are_named(self):
        rapt(*self.arguments("run"))
        run = self.folder / "run"
        for flags, words in ((("--dropout", "0.2"), ("--dropout", "0.1", "0.2")), (("--d-model", "32"), ("--d-model",)),
                             (("--seed", "9"), ("--seed", "0", "9")), (("--learning-rate", "1"), ("--learning-rate",)),
                             (("--norm-first",), ("--norm-first",)), (("--tie-embeddings", "none"), ("--tie-embeddings", "two")),
                             (("--epochs", "9"), ("--decay-steps",))):  # cosine falls to the end
            with self.subTest(flags):
                self.assert_fails(rapt("train", "--resume", run, *flags), 3, *words)
        self.target.write_text(TARGET_TEXT * LINES + "x\n")
        self.assert_fails(rapt("train", "--resume", run), 5, "target.txt", "has changed")

    def test_R20_R61_damaged_checkpoints(self):
        self.whole()
        rapt(*self.arguments("run", "--keep-last", "2"))
        checkpoints = sorted((self.folder / "run" / "checkpoints").glob("step-*"))
        self.assertGreaterEqual(len(checkpoints), 2)
        (checkpoints[-1] / "training.safetensors").unlink()
        result = rapt("train", "--resume", self.folder / "run")
        self.assertEqual(result.code, 0, result)
        self.assertIn("training.safetensors", result.err)
        self.assertTrue(snapshot(self.folder / "run") == snapshot(self.folder / "whole"))
        for path in (self.folder / "run" / "checkpoints").glob("step-*/training.json"):
            path.write_text("{")
        result = rapt("train", "--resume", self.folder / "run")
        self.assertEqual(result.code, 4, result)
        self.assertIn("no checkpoint is whole", result.err)

    def test_metrics_have_every_step(self):
        self.whole("--valid-source", self.source, "--valid-target", self.target, "--valid-metric", "bleu")
        lines = self.metrics("whole")
        trained = [line for line in lines if "loss" in line]
        self.assertEqual([line["step"] for line in trained], list(range(1, len(trained) + 1)))
        for line in trained:
            self.assertEqual(set(line), {"step", "epoch", "loss", "learning_rate", "gradient_norm", "tokens"})
        validated = [line for line in lines if "valid_loss" in line]
        self.assertEqual(len(validated), 3)
        self.assertEqual(set(validated[0]),
                         {"step", "valid_loss", "valid_perplexity", "valid_bleu", "valid_chrf", "best"})

    def test_plots_are_pictures(self):
        self.whole("--valid-source", self.source, "--valid-target", self.target, "--valid-metric", "chrf")
        for ending, start in (("png", b"\x89PNG"), ("svg", b"<svg")):
            out = self.folder / f"curves.{ending}"
            self.assertEqual(rapt("plot", self.folder / "whole", "--out", out).code, 0)
            for path in (out, self.folder / f"curves-score.{ending}"):
                self.assertTrue(path.read_bytes().startswith(start), path)
        text = rapt("plot", self.folder / "whole" / "metrics.jsonl")
        self.assertEqual(text.code, 0, text)
        self.assertRegex(text.out, r"── training  ╌╌ validation, best [0-9.]+ at step \d+  ↑ loss")
        self.assertNotIn("\x1b", text.out)
        colored = rapt("plot", self.folder / "whole", "--color", "always")
        self.assertIn("\x1b[", colored.out)
        self.assertNotIn("╌╌", colored.out)
        self.assert_fails(rapt("plot", self.folder / "none"), 5, "none")
        self.assert_fails(rapt("plot", self.folder), 5, "metrics.jsonl", "the folder of a run")
        self.assert_fails(rapt("plot", self.folder / "whole", "--out", "x.gif"), 2, ".png or .svg")
        self.assert_fails(rapt("plot", self.file("empty", "")), 5, "empty")

    def test_a_short_window_joins_the_one_before(self):
        """A line at the end of an epoch may be the mean of a step or two, and jumps."""
        lines = [{"step": step, "epoch": 1, "loss": loss} for step, loss in ((10, 4), (20, 3), (22, 9), (30, 2.5), (40, 2))]
        path = self.file("metrics.jsonl", "".join(json.dumps(line) + "\n" for line in lines))
        self.assertRegex(rapt("plot", path).out, r"(?m)^\s*4 ┤")  # 9 would be the top; with it, (3 * 10 + 9 * 2) / 12 = 4
        self.assertNotRegex(rapt("plot", path).out, r"(?m)^\s*[5-9] ┤")

    def test_presets_give_way_to_flags_and_are_remembered(self):
        flags = ["train", "--source", self.source, "--target", self.target, "--out", self.folder / "run", "--preset", "tiny",
                 "--layers", "1", "--steps", "2", "--log-every", "1"]
        self.assertEqual(rapt(*flags).code, 0)
        config = json.loads((self.folder / "run" / "config.json").read_text())
        self.assertEqual((config["d_model"], config["num_encoder_layers"], config["dropout"]), (128, 1, 0.3))
        result = rapt("train", "--resume", self.folder / "run", "--steps", "3")
        self.assertEqual(result.code, 0, result)
        self.assertEqual(self.metrics("run")[-1]["step"], 3)
        self.assert_fails(rapt(*flags, "--preset", "huge"), 2, "base, big, small")

    def test_two_processes_do_not_train_in_one_folder(self):
        running = subprocess.Popen([PROGRAM, *map(str, self.arguments("run", "--epochs", "100000", "--schedule", "constant"))],
                                   stderr=subprocess.PIPE, env=CLEAN)
        while not running.stderr.readline().startswith(b"epoch"):
            pass
        result = rapt(*self.arguments("run", "--restart"))
        running.send_signal(signal.SIGINT)
        running.communicate(timeout=60)
        self.assertEqual(result.code, 2, result)
        self.assertIn("another process trains there", result.err)
        self.assertEqual(rapt("inspect", self.folder / "run").code, 0)

    def test_flags_that_contradict_each_other(self):
        for flags, code, words in ((("--schedule", "noam", "--learning-rate", "1"), 3, ("--noam-factor",)),
                                   (("--schedule", "constant", "--decay-steps", "9"), 3, ("--decay-steps",)),
                                   (("--schedule", "noam", "--warmup", "0"), 3, ("warm-up",)),
                                   (("--valid-source", "a"), 2, ("--valid-target",)),
                                   (("--patience", "3"), 2, ("--valid-source",)),
                                   (("--minutes", "0"), 2, ("--minutes",)), (("--optimizer", "sgdd"), 2, ("sgdd",))):
            with self.subTest(flags):
                self.assert_fails(rapt(*self.arguments("run", *flags)), code, *words)

    def test_every_schedule_and_optimizer_trains(self):
        for schedule in ("noam", "inverse_sqrt", "linear", "constant"):
            for optimizer in ("adam", "sgd"):
                flags = ("--schedule", schedule, "--optimizer", optimizer, "--warmup", "5", "--steps", "7")
                self.assertEqual(rapt(*self.arguments(schedule + optimizer, *flags)).code, 0)
                self.assertEqual(self.metrics(schedule + optimizer)[-1]["step"], 7)
        warm = [line["learning_rate"] for line in self.metrics("noamadam")]
        self.assertEqual(max(warm), warm[4])
        self.assertAlmostEqual(warm[4], 16 ** -0.5 * 5 ** -0.5)

    def test_a_run_that_diverges_keeps_its_last_good_checkpoint(self):
        result = rapt(*self.arguments("run", "--learning-rate", "1e30", "--max-norm", "0", "--save-every", "1",
                                      "--max-skips", "2", "--warmup", "0"))
        self.assertEqual(result.code, 6, result)
        self.assertIn("was left out", result.err)
        self.assertIn("skipped", (self.folder / "run" / "metrics.jsonl").read_text())
        kept = list((self.folder / "run" / "checkpoints").iterdir())
        self.assertEqual(len(kept), 1)
        self.assertEqual(rapt("inspect", kept[0]).code, 0)


if __name__ == "__main__":
    unittest.main()
