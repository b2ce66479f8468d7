"""rapt train and rapt translate with subwords, packed files, and pairs in one file."""

import gzip
import unittest

from program import RUN_FILES, TINY, TestCase, rapt

SOURCE = "".join(f"der {a} {b}\n" for a in ("große", "kleine", "alte") for b in ("Hund", "Kater", "Vogel")) * 3
TARGET = "".join(f"the {a} {b}\n" for a in ("big", "small", "old") for b in ("dog", "cat", "bird")) * 3


class Subwords(TestCase):
    def train_with(self, *flags, out="model"):
        return rapt("train", *flags, "--out", self.folder / out, "--restart", *TINY, "--max-len", "40")

    def files(self):
        return "--source", self.file("source", SOURCE), "--target", self.file("target", TARGET)

    def names(self, out="model"):
        """What the folder has beside the run's own files."""
        return {path.name for path in (self.folder / out).iterdir()} - RUN_FILES

    def assert_translates(self, out="model"):
        result = rapt("translate", self.folder / out, "--max-length", "20", stdin="der alte Hund\n\nder \u4eca <s>\n")
        self.assertEqual((result.code, len(result.lines), result.lines[1]), (0, 3, ""), result)

    def test_joint_subwords_stand_in_the_folder_once(self):
        result = self.train_with(*self.files(), "--subwords", "60")
        self.assertEqual(result.code, 0, result)
        self.assertEqual(self.names(), {"config.json", "model.safetensors", "subwords.model"})
        self.assert_translates()
        self.assertEqual(self.train_with(*self.files(), "--subwords", "60").code, 0)  # over the one before
        pieces = rapt("tokenize", "encode", self.folder / "model/subwords.model", stdin="der Hund\n")
        self.assertEqual(pieces.code, 0)

    def test_tokenizers_of_ones_own(self):
        sides = self.files()
        for name, text in (("s.model", sides[1]), ("t.model", sides[3])):
            self.assertEqual(rapt("tokenize", "train", "--input", text, "--out", self.folder / name,
                                  "--vocab-size", "40", "--model-type", "bpe").code, 0)
        given = "--source-tokenizer", self.folder / "s.model", "--target-tokenizer", self.folder / "t.model"
        self.assertEqual(self.train_with(*sides, *given).code, 0)
        self.assertEqual(self.names(), {"config.json", "model.safetensors", "source_subwords.model", "target_subwords.model"})
        self.assertEqual((self.folder / "model/source_subwords.model").read_bytes(), (self.folder / "s.model").read_bytes())
        self.assert_translates()
        self.assert_fails(self.train_with(*sides, *given[:2]), 2, "--target-tokenizer")
        self.assert_fails(self.train_with(*sides, *given, "--subwords", "60"), 2, "--subwords")
        self.assert_fails(self.train_with(*sides, "--source-tokenizer", sides[1], "--target-tokenizer", sides[3]),
                          5, "SentencePiece")

    def test_packed_files_and_pairs_in_one_file_train_the_same_model(self):
        self.assertEqual(self.train_with(*self.files()).code, 0)
        packed = [self.file(f"{name}.gz", gzip.compress(text.encode())) for name, text in (("s", SOURCE), ("t", TARGET))]
        self.assertEqual(self.train_with("--source", packed[0], "--target", packed[1], out="packed").code, 0)
        rows = "".join(f"{t}\t{s}\tCC-BY 2.0: somebody\n" for s, t in zip(SOURCE.split("\n")[:-1], TARGET.split("\n")[:-1]))
        pairs = self.file("pairs.tsv", "\ufeff" + rows.replace("\n", "\r\n"))
        self.assertEqual(self.train_with("--pairs", pairs, "--columns", "2,1", out="pairs").code, 0)
        weights = (self.folder / "model/model.safetensors").read_bytes()
        for other in ("packed", "pairs"):
            self.assertEqual((self.folder / other / "model.safetensors").read_bytes(), weights, other)

    def test_mistakes_are_named(self):
        pairs = self.file("pairs.tsv", "a\tb\nonly one column\n")
        self.assert_fails(self.train_with("--pairs", pairs), 5, "pairs.tsv:2", "2 columns")
        self.assert_fails(self.train_with("--pairs", pairs, *self.files()), 2, "--pairs")
        self.assert_fails(self.train_with("--pairs", pairs, "--columns", "2"), 2, "--columns")
        self.assert_fails(self.train_with(*self.files(), "--subwords", "5"), 3, "for the characters", "got 5;")
        cut = self.file("cut.gz", gzip.compress(SOURCE.encode())[:-9])
        self.assert_fails(self.train_with("--source", cut, "--target", self.files()[3]), 5, "cut.gz")


if __name__ == "__main__":
    unittest.main()
