"""rapt train: any two aligned text files, and what it says of bad ones."""

import hashlib
import unittest
import os

from program import TINY, ProgramTest, run


class Train(ProgramTest):
    def test_writes_a_folder_that_translates(self):
        model = self.train()
        self.assertEqual(sorted(p.name for p in model.iterdir()),
                         ["config.json", "model.safetensors", "source_vocabulary.txt", "target_vocabulary.txt"])
        out = self.expect(0, "translate", model, stdin="a b c\nc\n")
        self.assertEqual(out.count("\n"), 2)

    def test_a_loss_an_epoch_as_plain_lines(self):
        a, b = self.corpus()
        code, out, err = run("train", "--source", a, "--target", b, "--out", self.folder / "m", *TINY, "--epochs", "3")
        self.assertEqual((code, out), (0, ""))
        lines = [line for line in err.splitlines() if line.startswith("epoch")]
        self.assertEqual(len(lines), 3)
        for part in ("loss", "tokens/s", "left"):
            self.assertIn(part, lines[0])
        self.assertNotIn("\r", err)

    def test_a_missing_file_is_named(self):
        a, b = self.corpus()
        self.train(source=self.folder / "none.txt", target=b, code=5, says=["none.txt"])

    def test_files_of_unequal_length_are_refused(self):
        a, b = self.corpus(target="x y z\ny z\n")
        self.train(source=a, target=b, code=5, says=["b.txt", "3"])
        self.assertFalse((self.folder / "model").exists())

    def test_an_empty_training_file_is_refused(self):
        a, b = self.corpus("", "")
        self.train(source=a, target=b, code=5, says=["a.txt"])

    def test_R36_pairs_with_an_empty_side_are_left_out_together(self):
        a, b = self.corpus("a b\n\nc\n", "x y\nz\n \n")
        code, out, err = run("train", "--source", a, "--target", b, "--out", self.folder / "m", *TINY, "--epochs", "1")
        self.assertEqual(code, 0, err)
        self.assertIn("1 pairs (2 with an empty side", err)

    def test_R40_invalid_utf8_is_refused_with_its_place(self):
        for bad in (b"\xff", b"\xc3", b"\xc0\xaf", b"\xed\xa0\x80"):
            a, b = self.corpus(b"a b\nc " + bad + b"\n", "x\ny\n")
            self.train(source=a, target=b, code=5, says=["a.txt:2"])

    def test_R38_only_a_line_feed_ends_a_line(self):
        a, b = self.corpus("a\u2028b\nc\u0085d \x0b e\n", "x\ny\n")
        self.train(source=a, target=b)

    def test_R39_crlf_and_lf_train_the_same_model(self):
        models = []
        for end in ("\n", "\r\n"):
            a, b = self.corpus(f"a b{end}c{end}", f"x{end}y z{end}")
            models.append(self.train(source=a, target=b, out="m" + str(len(end))))
        for name in ("model.safetensors", "source_vocabulary.txt", "target_vocabulary.txt"):
            self.assertEqual(*[(m / name).read_bytes() for m in models], name)

    def test_a_line_of_a_megabyte_is_left_out_and_counted(self):
        a, b = self.corpus("a b\n" + "a " * 500_000 + "\nc\n", "x\ny\nz\n")
        code, out, err = run("train", "--source", a, "--target", b, "--out", self.folder / "m", *TINY, "--epochs", "1")
        self.assertEqual(code, 0, err)
        self.assertIn("1 too long", err)

    def test_R43_threads_change_no_bit_of_a_model(self):
        hashes = set()
        for threads in ("1", "1", "2", "3"):
            model = self.train("--threads", threads, out="m" + threads)
            hashes.add(hashlib.sha256((model / "model.safetensors").read_bytes()).hexdigest())
        self.assertEqual(len(hashes), 1)

    def test_an_old_model_is_replaced_as_a_whole_and_kept_when_training_fails(self):
        model = self.train()
        before = (model / "model.safetensors").read_bytes()
        a, b = self.corpus("a\nb\n", "x\n")
        self.train(source=a, target=b, code=5)
        self.assertEqual((model / "model.safetensors").read_bytes(), before)
        self.train("--seed", "5")
        self.assertNotEqual((model / "model.safetensors").read_bytes(), before)
        self.assertEqual([p.name for p in self.folder.iterdir() if p.suffix == ".tmp"], [])

    @unittest.skipIf(os.geteuid() == 0, "root may write anywhere")
    def test_a_folder_that_cannot_be_written_is_an_error(self):
        closed = self.folder / "closed"
        closed.mkdir(mode=0o500)
        self.train(out="closed/model", code=1, says=["closed"])

    def test_out_in_a_place_that_is_a_file_is_an_error(self):
        self.file("taken", "text")
        self.train(out="taken/model", code=1, says=["taken"])
