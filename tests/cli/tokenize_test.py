"""rapt tokenize: models learnt, pieces and text, one line out for each line in."""

import unittest

from program import TestCase, rapt

TEXT = "".join(f"the {a} {b} {c} on the mat\n" for a in ("big", "small", "red", "old")
               for b in ("dog", "cat", "bird", "house") for c in ("sleeps", "sleeping", "walks", "walking"))


class Tokenize(TestCase):
    def learn(self, *flags, text=TEXT, out="m.model"):
        self.text = self.file("text", text)
        return rapt("tokenize", "train", "--input", self.text, "--out", self.folder / out, "--vocab-size", 60, *flags)

    def model(self, *flags, **how):
        result = self.learn(*flags, **how)
        self.assertEqual((result.code, result.bytes), (0, b""), result)
        return self.folder / how.get("out", "m.model")

    def test_the_library_says_nothing_and_we_say_one_line(self):
        result = self.learn()
        self.assertRegex(result.err, r"^(rapt: )?wrote .*m\.model: \d+ pieces from 64 lines\n$")

    def test_text_becomes_pieces_and_ids_and_text_again(self):
        for kind in ("unigram", "bpe", "char"):
            model = self.model("--model-type", kind)
            text = "the old cat walks\n\nthe house on the mat\n"
            for flags in ([], ["--ids"]):
                pieces = rapt("tokenize", "encode", model, *flags, stdin=text)
                self.assertEqual((pieces.code, len(pieces.lines), pieces.lines[1]), (0, 3, ""))
                self.assertEqual(rapt("tokenize", "decode", model, *flags, stdin=pieces.out).out, text)

    def test_unknown_characters_survive_as_pieces(self):
        model = self.model()
        pieces = rapt("tokenize", "encode", model, stdin="the \u4eca cat\n").out
        self.assertIn("\u4eca", pieces)
        self.assertEqual(rapt("tokenize", "decode", model, stdin=pieces).out, "the \u4eca cat\n")
        ids = rapt("tokenize", "encode", model, "--ids", stdin="\u4eca\n").out
        self.assertEqual(rapt("tokenize", "decode", model, "--ids", stdin=ids).out.strip(), "\u2047")

    def test_a_run_gives_the_same_model_as_the_last_one(self):
        one, other = self.model(out="one.model"), self.model(out="other.model")
        self.assertEqual(one.read_bytes(), other.read_bytes())

    def test_user_symbols_are_never_cut(self):
        model = self.model("--user-symbols", "<sep>,[X]")
        self.assertIn("<sep> [X]", rapt("tokenize", "encode", model, stdin="the<sep>[X]cat\n").out)

    def test_R36_R38_R39_one_line_for_each_line(self):
        model = self.model()
        for text, lines in (("", 0), ("\n", 1), ("  \n", 1), ("a\n\nb", 3), ("a\u2028b\u0085c\vd\n", 1), ("a\r\nb\r\n", 2)):
            with self.subTest(repr(text)):
                self.assertEqual(len(rapt("tokenize", "encode", model, stdin=text).lines), lines)
        plain = rapt("tokenize", "encode", model, stdin="the cat\nthe dog\n").out
        self.assertEqual(rapt("tokenize", "encode", model, stdin="\ufeffthe cat\r\nthe dog\r\n").out, plain)

    def test_mistakes_are_named(self):
        model = self.model()
        self.assert_fails(rapt("tokenize", stdin=""), 2, "tokenize: expected a verb", "encode")
        self.assert_fails(rapt("tokenize", "encode", stdin=""), 2, "tokenize encode: expected", "MODEL")
        self.assert_fails(rapt("tokenize", "encoed", model, stdin=""), 2, "did you mean encode")
        self.assert_fails(rapt("tokenize", "encode", model, "--idz", stdin=""), 2, "did you mean --ids")
        self.assert_fails(rapt("tokenize", "encode", self.folder / "none", stdin="a\n"), 5, "none")
        self.assert_fails(rapt("tokenize", "encode", self.text, stdin="a\n"), 5, str(self.text), "SentencePiece")
        self.assert_fails(rapt("tokenize", "encode", model, stdin=b"\xff\n"), 5, "stdin:1", "UTF-8")
        for bad in ("99999", "-1", "x", "1.5", "99999999999999999999"):
            self.assert_fails(rapt("tokenize", "decode", model, "--ids", stdin=bad + "\n"), 5, "stdin:1", bad)
        self.assert_fails(self.learn("--vocab-size", "6"), 3, "at least 24 entries", "got 6;")
        self.assert_fails(self.learn("--character-coverage", "0.1"), 2, "coverage")
        self.assert_fails(self.learn("--user-symbols", "a,a"), 2, "twice")
        self.assert_fails(self.learn(text="\n \n"), 5, "no line")
        self.assert_fails(self.learn("--model-type", "wordpiece"), 2, "--model-type")


if __name__ == "__main__":
    unittest.main()
