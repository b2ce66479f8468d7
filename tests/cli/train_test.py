"""rapt train: a model from any two aligned text files, and what it says of bad ones."""

import hashlib
import json
import os
import random
import signal
import subprocess
import sys
import time
import unittest

from program import CLEAN, PROGRAM, SOURCE_TEXT, TARGET_TEXT, TINY, TestCase, rapt, snapshot


class Train(TestCase):
    def test_writes_a_model_that_translates(self):
        model = self.model("--epochs", "300", "--learning-rate", "0.005", "--dropout", "0")
        self.assertEqual(sorted(snapshot(model)),
                         ["config.json", "model.safetensors", "source_vocabulary.txt", "target_vocabulary.txt"])
        result = rapt("translate", model, stdin="a b c\nc a a\n")
        self.assertEqual(result.lines, ["x y z", "z x x"], result)

    def test_prints_a_loss_an_epoch_as_plain_lines_on_stderr(self):
        result = self.train("--epochs", "3")
        self.assertEqual((result.code, result.out), (0, ""))
        lines = [line for line in result.err.splitlines() if line.startswith("epoch")]
        self.assertEqual([line.split()[1] for line in lines], ["1/3", "2/3", "3/3"])
        for line in lines:
            self.assertRegex(line, r"^epoch \d/3  loss \d\.\d{4}  \d+ tokens/s  \d\d:\d\d left$")
        self.assertNotIn("\r", result.err)
        self.assertNotIn("\x1b", result.err)
        self.assertNotIn("epoch", self.train("--progress", "none").err)

    def test_the_end_says_what_was_done_and_what_to_do_next(self):
        result = self.train("--steps", "3", "--log-every", "1")
        folder = self.folder / "model"
        self.assertTrue(result.err.endswith(
            f"wrote {folder} after 3 steps: the last model, of step 3\n"
            f"translate with: rapt translate {folder} --beam 5 < FILE; its curves: rapt plot {folder}\n"), result)
        self.assertEqual(rapt("translate", folder, "--beam", "5", stdin="a b\n").code, 0)
        self.assertEqual(rapt("plot", folder).code, 0)

    def test_the_corpus_is_described(self):
        self.assertIn("5 pairs (0 with an empty side and 0 too long left out), vocabularies of 7 and 7 entries",
                      self.train().err)
        self.assertIn("vocabularies of 5 and 5 entries", self.train("--min-count", "5").err)  # two are left to <unk>

    def test_contradicting_settings_are_3_before_the_corpus_is_read(self):
        result = rapt("train", "--source", "none", "--target", "none", "--out", self.folder / "m", *TINY, "--nhead", "3")
        self.assert_fails(result, 3, "nhead 3 does not divide d_model 16")

    def test_a_loss_that_is_not_finite_is_6_and_the_old_model_intact(self):
        before = snapshot(self.model())
        result = self.train("--learning-rate", "1e30", "--epochs", "9")
        self.assertEqual(result.code, 6, result)
        self.assertIn("rapt: training diverged", result.err)
        self.assertEqual(snapshot(self.folder / "model"), before)

    def test_R43_threads_change_no_bit_of_a_model(self):
        hashes = {hashlib.sha256((self.model("--threads", threads, "--epochs", "5") / "model.safetensors").read_bytes())
                  .hexdigest() for threads in ("1", "2", "3", "7", "1")}
        self.assertEqual(len(hashes), 1)

    def test_threads_change_no_bit_of_a_model_trained_in_bf16(self):
        hashes = {hashlib.sha256((self.model("--threads", threads, "--dtype", dtype) / "model.safetensors").read_bytes())
                  .hexdigest() for threads in ("1", "2", "3") for dtype in ("bf16", "f32")}
        self.assertEqual(len(hashes), 2)  # one of each type

    def test_dropout_has_rates_of_their_own(self):
        def rates(*flags):
            config = json.loads((self.model("--epochs", "1", "--dropout", "0.1", *flags) / "config.json").read_text())
            return [config.get(f"{key}dropout") for key in ("", "position_", "attention_", "activation_")]
        self.assertEqual(rates(), [0.1, 0.1, None, None])
        self.assertEqual(rates("--embedding-dropout", "0", "--attention-dropout", "0.2", "--activation-dropout", "0.3"),
                         [0.1, 0, 0.2, 0.3])

    def test_recomputing_changes_no_bit_of_a_model(self):
        hashes = {hashlib.sha256((self.model(*flags, "--epochs", "3") / "model.safetensors").read_bytes()).hexdigest()
                  for flags in ((), ("--recompute",))}
        self.assertEqual(len(hashes), 1)

    def test_a_signal_stops_after_the_step_and_the_model_is_written(self):
        for number, code in ((signal.SIGINT, 130), (signal.SIGTERM, 143)):
            with self.subTest(number):
                running = subprocess.Popen(
                    [PROGRAM, "train", "--source", self.file("a", "a b\n" * 50), "--target", self.file("b", "x y\n" * 50),
                     "--out", self.folder / "model", *TINY, "--epochs", "1000000", "--restart"], stderr=subprocess.PIPE, env=CLEAN)
                line = b""
                while not line.startswith(b"epoch"):  # it has begun
                    line = running.stderr.readline()
                    self.assertNotEqual(line, b"")
                running.send_signal(number)
                rest = running.communicate(timeout=60)[1]
                self.assertEqual(running.returncode, code, rest)
                self.assertIn(b"stopped early; wrote", rest)
                self.assertEqual(rapt("translate", self.folder / "model", stdin="a b\n").code, 0)


class BadCorpus(TestCase):
    """Each is 5 with one line, and an old model is what it was."""

    def setUp(self):
        super().setUp()
        self.before = snapshot(self.model())

    def tearDown(self):
        self.assertEqual(snapshot(self.folder / "model"), self.before)
        self.assertEqual([path for path in self.folder.iterdir() if path.suffix == ".tmp"], [])

    def test_a_missing_file_a_folder_and_a_pipe(self):
        text = self.file("text", "a\n")
        for source, target, named in ((self.folder / "none", text, "none"), (text, self.folder / "none", "none"),
                                      (self.folder, text, "folder"), (text, "/dev/null", "/dev/null")):
            with self.subTest(named):
                self.assert_fails(rapt("train", "--source", source, "--target", target, "--out", self.folder / "model",
                                       "--restart", *TINY), 5, named)

    def test_files_of_unequal_length_name_the_first_line_that_differs(self):
        self.assert_fails(self.train(target="x\ny\n"), 5, "source.txt", "target.txt", "line 3", "5 lines in all")
        self.assert_fails(self.train(source="a\n"), 5, "line 2")

    def test_files_without_a_pair(self):
        for source, target in (("", ""), ("\n\n", "x\ny\n"), ("  \n", "\t\n"), ("\ufeff", "")):
            with self.subTest(repr((source, target))):
                self.assert_fails(self.train(source=source, target=target), 5, "no sentence pair")

    def test_R40_invalid_utf8_is_refused_with_line_and_byte(self):
        for bad in (b"\xff", b"\xe9", b"\x8e", b"\xc0\xaf", b"\xed\xa0\x80", b"\xe2\x82"):
            with self.subTest(bad):
                self.assert_fails(self.train(source=b"a b\nc a" + bad + b"\n", target="x\ny\n"), 5,
                                  "source.txt:2", "byte 4", "offset 7")
        self.assert_fails(self.train(source="a", target=b"x\xe2\x82"), 5, "target.txt:1", "byte 2")

    def test_all_pairs_too_long(self):
        self.assert_fails(self.train(source="a " * 13, target="x"), 5, "1 too long")

    def test_a_pair_over_the_batch(self):
        result = self.train("--batch-tokens", "3")
        self.assertEqual(result.code, 5, result)
        self.assertRegex(result.err, r"rapt: batches: the pair of line \d has \d tokens, a batch may have 3")


class OddText(TestCase):
    def test_R36_pairs_with_an_empty_side_are_left_out_together(self):
        result = self.train(source="a b\n\nc\n   \nb\n", target="x y\nz\n \ny\nx\n")
        self.assertEqual(result.code, 0, result)
        self.assertIn("2 pairs (3 with an empty side and 0 too long left out)", result.err)

    def test_R38_only_a_line_feed_ends_a_line(self):
        odd = "a\u0085b\u2028c\u2029d\ve\ff\rg\nb\n"
        result = self.train(source=odd, target="x\ny\n")
        self.assertEqual(result.code, 0, result)
        self.assertIn("2 pairs", result.err)
        words = (self.folder / "model" / "source_vocabulary.txt").read_bytes().decode().split("\n")
        self.assertIn(odd.split("\n")[0], words)  # one word: only spaces and tabs separate

    def test_R39_crlf_and_a_byte_order_mark_train_the_same_model(self):
        plain = snapshot(self.model(source="a b\nc\n", target="x\ny z\n"))
        for end, mark in (("\r\n", ""), ("\n", "\ufeff"), ("\r\n", "\ufeff")):
            with self.subTest(end + mark):
                other = self.model(source=mark + f"a b{end}c{end}", target=mark + f"x{end}y z{end}", out="other")
                self.assertEqual(snapshot(other), plain)

    def test_R40_invalid_utf8_is_replaced_and_counted_where_asked_for(self):
        result = self.train("--invalid-utf8", "replace", source=b"a\xff b\nc\xe2\x82\n", target=b"x\n\x80y\n")
        self.assertEqual(result.code, 0, result)
        self.assertIn("3 invalid UTF-8 sequences became U+FFFD", result.err)
        for side, words in (("source", ["a\ufffd", "b", "c\ufffd"]), ("target", ["x", "\ufffdy"])):
            known = (self.folder / "model" / f"{side}_vocabulary.txt").read_text().split("\n")
            self.assertEqual(sorted(known[4:-1]), sorted(words))

    def test_R40_nul_is_a_character(self):
        self.assertEqual(self.train(source=b"a\0b c\n", target="x\n").code, 0)
        result = rapt("translate", self.folder / "model", stdin=b"a\0b c\n")
        self.assertEqual(result.code, 0, result)

    def test_R41_spellings_of_special_entries_are_words_that_nobody_knows(self):
        self.assertEqual(self.train(source="<pad> a </s>\n", target="<s> x <unk>\n").code, 0)
        for side in ("source", "target"):
            words = (self.folder / "model" / f"{side}_vocabulary.txt").read_text().split("\n")
            self.assertEqual(words[:4], ["<pad>", "<s>", "</s>", "<unk>"])
            self.assertEqual(len(set(words)), len(words))

    def test_a_line_of_a_megabyte_is_left_out_and_a_word_of_one_is_a_word(self):
        result = self.train(source="a b\n" + "a " * 500_000 + "\nc\n", target="x\ny\nz\n")
        self.assertEqual(result.code, 0, result)
        self.assertIn("2 pairs (0 with an empty side and 1 too long left out)", result.err)
        self.assertEqual(self.train(source="a b\n" + "a" * 1_000_000 + "\n", target="x\ny\n").code, 0)


class Out(TestCase):
    def test_an_old_model_is_replaced_as_a_whole(self):
        before = snapshot(self.model())
        self.model("--seed", "5", source="d e\n", target="v w\n")
        after = snapshot(self.folder / "model")
        for name in before:
            self.assertNotEqual(before[name], after[name], name)
        self.assertEqual(sorted(p.name for p in self.folder.iterdir()), ["model", "source.txt", "target.txt"])

    def test_folders_above_it_are_made(self):
        self.assertEqual(self.train(out="some/new/model").code, 0)
        self.assertTrue((self.folder / "some/new/model/config.json").exists())

    def test_what_is_no_model_is_never_replaced(self):
        self.folder.joinpath("mine").mkdir()
        note = self.file("mine/notes.txt", "mine")
        result = rapt("train", "--source", "a", "--target", "b", "--out", "")
        self.assert_fails(result, 2, "empty name")
        self.assert_fails(self.train(out="mine"), 2, "mine", "notes.txt")
        self.assert_fails(self.train(out="."), 2, "nothing but a model")
        self.assert_fails(self.train(out="mine/notes.txt"), 2, "got a file")
        self.assert_fails(self.train(out="mine/notes.txt/model"), 1, "notes.txt is not a folder")
        self.assertEqual(note.read_text(), "mine")

    def test_R61_a_kill_leaves_the_old_model_or_the_new(self):
        arguments = [PROGRAM, "train", "--source", self.file("a", SOURCE_TEXT), "--target", self.file("b", TARGET_TEXT),
                     "--out", self.folder / "model", *TINY, "--epochs", "1", "--quiet", "--restart"]
        whole = []
        for seed in ("1", "2"):
            subprocess.run([*arguments, "--seed", seed], check=True, env=CLEAN)
            whole.append(snapshot(self.folder / "model"))
        delays = random.Random(61)
        for turn in range(40):
            running = subprocess.Popen([*arguments, "--seed", "12"[turn % 2]], env=CLEAN)
            time.sleep(delays.uniform(0, 0.015))
            running.kill()
            running.wait()
            self.assertIn(snapshot(self.folder / "model"), whole)
        subprocess.run([*arguments, "--seed", "1"], check=True, env=CLEAN)
        self.assertEqual(snapshot(self.folder / "model"), whole[0])
        self.assertEqual(sorted(p.name for p in self.folder.iterdir()), ["a", "b", "model"])  # leftovers are gone

    @unittest.skipIf(os.geteuid() == 0, "root may write anywhere")
    def test_a_folder_that_cannot_be_written_to_is_1_before_training(self):
        self.folder.joinpath("closed").mkdir(mode=0o500)
        self.assert_fails(self.train(out="closed/model"), 1, "closed")

    @unittest.skipUnless(os.geteuid() == 0 and sys.platform == "linux", "mounting a small file system needs root")
    def test_a_full_disk_is_1_and_the_old_model_intact(self):
        disk = self.folder / "disk"
        disk.mkdir()
        mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=256k", "none", disk], capture_output=True)
        if mounted.returncode != 0:
            self.skipTest("a small file system cannot be mounted here")
        self.addCleanup(subprocess.run, ["umount", disk])
        before = snapshot(self.model(out="disk/model"))
        result = self.train("--d-model", "64", "--nhead", "4", out="disk/model")
        self.assertEqual(result.code, 1, result)
        self.assertRegex(result.err, r"rapt: cannot write .*No space left on device")
        self.assertEqual(snapshot(disk / "model"), before)
        self.assertEqual([p.name for p in disk.iterdir()], ["model"])


if __name__ == "__main__":
    unittest.main()
