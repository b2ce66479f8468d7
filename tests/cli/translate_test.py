"""rapt translate: one line out for each line in, whatever comes in."""

import gzip
import os
import subprocess
import unittest

from program import CLEAN, PROGRAM, TestCase, edit_config, rapt


class Translate(TestCase):
    def setUp(self):
        super().setUp()
        self.trained = self.model()

    def translate(self, text, *flags):
        return rapt("translate", self.trained, *flags, stdin=text)

    def assert_alike_but(self, result, refused, *words):
        """Exit 5, one line for each of the input, the refused one empty and named, the others as ever."""
        self.assertEqual(result.code, 5, result)
        complaints = [line for line in result.err.splitlines() if line.startswith("rapt: ")]
        self.assertEqual(len(complaints), 1, result)
        for word in words:
            self.assertIn(word, complaints[0])
        alone = self.translate("a\nb c\n")
        self.assertEqual(result.lines, alone.lines[:refused] + [""] + alone.lines[refused:])

    def test_the_same_input_gives_the_same_output(self):
        self.assertEqual(self.translate("a b\n", "--scores").bytes, self.translate("a b\n", "--scores").bytes)

    def test_R36_empty_and_blank_lines_give_empty_ones(self):
        for text, lines in (("", 0), ("\n", 1), ("   \n", 1), ("\t", 1), ("a\n\nb\n", 3), ("a b", 1), ("\n\n\n", 3)):
            with self.subTest(repr(text)):
                result = self.translate(text)
                self.assertEqual((result.code, result.err, len(result.lines)), (0, "", lines))
                for given, got in zip(text.split("\n"), result.lines):
                    if not given.strip():
                        self.assertEqual(got, "")

    def test_R37_a_line_over_the_limit_is_named_and_ten_lines_come_out(self):
        lines = ["a b"] * 10
        lines[3] = "a " * 5000
        result = self.translate("\n".join(lines) + "\n")
        self.assertEqual(result.code, 5)
        self.assertIn("rapt: stdin:4: the line has 5000 words, the model takes 12", result.err)
        self.assertEqual(len(result.lines), 10)
        self.assertEqual({line for i, line in enumerate(result.lines) if i != 3}, set(self.translate("a b\n").lines))
        self.assertEqual(result.lines[3], "")

    def test_R24_as_many_words_as_the_model_has_positions_and_one_more(self):
        full = " ".join(["a"] * 12)
        self.assertEqual(self.translate(full + "\n").code, 0)
        self.assert_alike_but(self.translate(f"a\n{full} a\nb c\n"), 1, "stdin:2", "13 words", "12")

    def test_R38_only_a_line_feed_ends_a_line(self):
        for odd in ("\u0085", "\u2028", "\u2029", "\v", "\f", "a\rb"):
            result = self.translate(f"a {odd} b\nb\n")
            self.assertEqual((result.code, len(result.lines)), (0, 2), odd)

    def test_R39_crlf_and_a_byte_order_mark_change_nothing(self):
        plain = self.translate("a b\n\nc\n", "--scores").bytes
        for text in ("a b\r\n\r\nc\r\n", "\ufeffa b\n\nc\n", "\ufeffa b\r\n\r\nc"):
            self.assertEqual(self.translate(text, "--scores").bytes, plain)

    def test_R40_a_line_that_is_not_utf8_is_named_and_the_rest_translated(self):
        for bad in (b"\xff", b"\xe9", b"\x8e", b"\xc0\xaf", b"\xed\xa0\x80", b"\xe2\x82"):
            with self.subTest(bad):
                self.assert_alike_but(self.translate(b"a\nc " + bad + b"\nb c\n"), 1, "stdin:2", "byte 3", "offset 4")
        self.assert_alike_but(self.translate(b"a\nb c\nc\xe2\x82"), 2, "stdin:3", "byte 2")

    def test_R40_invalid_utf8_is_replaced_and_counted_where_asked_for(self):
        result = self.translate(b"a \xff\nb\n", "--invalid-utf8", "replace")
        self.assertEqual((result.code, len(result.lines)), (0, 2))
        self.assertIn("1 invalid UTF-8 sequences became U+FFFD", result.err)
        self.assertEqual(result.bytes, self.translate("a \ufffd\nb\n").bytes)

    def test_an_unknown_word_is_unk_or_where_there_is_none_an_error_of_its_line(self):
        self.assertEqual(self.translate("a nosuchword\n").code, 0)
        self.assertEqual(self.translate("a nosuchword\n").out, self.translate("a <unk>\n").out)
        edit_config(self.trained, unk_id=None)
        self.assert_alike_but(self.translate("a\nnosuchword b\nb c\n"), 1, "stdin:2", 'nosuchword')

    def test_unknown_words_are_counted(self):
        self.assertIn("2 of 5 words are unknown to the model", self.translate("a nosuchword\nb nosuchword c\n").err)
        self.assertNotIn("unknown", self.translate("a b\n").err)
        self.assertNotIn("unknown", self.translate("nosuchword\n", "--quiet").err)

    def test_packed_text_on_standard_input_is_refused(self):
        self.assert_fails(self.translate(gzip.compress(b"a b\nc\n")), 5, "stdin", "packed by gzip", "gunzip -c")
        self.assert_fails(self.translate(b"PK\x03\x04 and so on\n"), 5, "stdin", "packed by zip")

    def test_control_entries_are_words_that_nobody_knows(self):
        unknown = self.translate("a nosuchword b\n", "--scores").out
        for entry in ("<pad>", "<s>", "</s>"):
            self.assertEqual(self.translate(f"a {entry} b\n", "--scores").out, unknown, entry)

    def test_a_line_of_a_megabyte(self):
        self.assert_alike_but(self.translate("a\n" + "a " * 500_000 + "\nb c\n"), 1, "stdin:2", "500000 words")
        result = self.translate("a\n" + "a" * 1_000_000 + "\n")  # one word
        self.assertEqual((result.code, len(result.lines)), (0, 2))

    def test_a_line_without_end_is_refused_as_one(self):
        self.assert_alike_but(self.translate("a\n" + "a" * 17_000_000 + "\nb c\n"), 1, "stdin:2", "longer than 16000000 bytes")

    def test_refused_lines_are_counted_at_the_end(self):
        result = self.translate(b"\xff\na\n\xff")
        self.assertIn("2 of 3 lines were not translated", result.err)
        self.assertNotIn("of 3 lines", self.translate(b"\xff\na\n\xff", "--quiet").err)

    def test_R31_R43_neither_batch_nor_threads_change_a_translation_or_score(self):
        lines = ["a b c", "", "c c", "b", "a a a a a", "unknown words", "a b c a b c a b c a b c"] * 7
        outputs = {self.translate("\n".join(lines), "--batch", batch, "--threads", threads, "--scores").bytes
                   for batch in (1, 2, 7, 32, 1024) for threads in (1, 2, 3)}
        self.assertEqual(len(outputs), 1)

    def test_scores_are_log_probabilities_before_a_tab(self):
        plain, scored = self.translate("a b\n\n"), self.translate("a b\n\n", "--scores")
        scores, texts = zip(*(line.split("\t") for line in scored.lines))
        self.assertEqual(list(texts), plain.lines)
        self.assertLess(float(scores[0]), 0)
        self.assertEqual(float(scores[1]), 0)

    def test_max_length_bounds_the_words(self):
        for limit in (1, 2, 12):
            for line in self.translate("a b c\nb\n", "--max-length", limit).lines:
                self.assertLessEqual(len(line.split()), limit)

    def test_the_ratio_bounds_the_words_by_those_of_the_line(self):
        text = "a b c\nb\n\na a a a a a a\n"
        for beam in (1, 3):
            for ratio, extra in ((1, 0), (0.4, 1), (2, 0)):
                result = self.translate(text, "--beam", beam, "--max-length-ratio", ratio, "--max-length-extra", extra)
                for line, translated in zip(text.splitlines(), result.lines, strict=True):
                    self.assertLessEqual(len(translated.split()), max(1, int(ratio * len(line.split())) + extra))
        unbounded = self.translate(text, "--max-length-ratio", 0).lines
        self.assertEqual(self.translate(text, "--max-length-ratio", 0, "--max-length-extra", 3).lines, unbounded)
        self.assertIn("stopped at their length limit", self.translate(text, "--max-length", 1, "-v").err)

    def test_bad_limits_are_errors(self):
        for flag, values, words in (("--max-length", (0, -1, "x", 1.5), "a whole number from 1"),
                                    ("--max-length-ratio", (-1, "nan", "inf", "x", 1001), "number from 0 to 1000"),
                                    ("--max-length-extra", (-1, "x", 0.5), "whole number")):
            for value in values:
                with self.subTest((flag, value)):
                    self.assert_fails(self.translate("a\n", f"{flag}={value}"), 2, flag, words)

    def test_a_beam_of_one_is_greedy(self):
        for text in ("a b c\n\nb\n", "c a b b\n"):
            self.assertEqual(self.translate(text, "--scores", "--beam", 1).bytes, self.translate(text, "--scores").bytes)

    def test_beams_give_one_line_for_each_and_their_list_begins_with_it(self):
        text = "a b c\n\nnosuchword\nb a\n"
        best = self.translate(text, "--beam", 4, "--scores")
        self.assertEqual((best.code, len(best.lines)), (0, 4))
        listed = self.translate(text, "--beam", 4, "--n-best", 3, "--scores")
        self.assertEqual(listed.code, 0)
        fields = [line.split(" ||| ") for line in listed.lines]
        self.assertEqual([line[0] for line in fields], [*"000", "1", *"222", *"333"])
        for number, line in enumerate(best.lines):
            mine = [(words, total, float(score)) for at, words, total, score in fields if at == str(number)]
            self.assertEqual(f"{mine[0][1]}\t{mine[0][0]}", line)
            self.assertEqual(mine, sorted(mine, key=lambda one: -one[2]))
        short = self.translate(text, "--beam", 4, "--n-best", 3).lines
        self.assertEqual(short, [" ||| ".join([at, words, score]) for at, words, _, score in fields])

    def test_R31_R43_neither_batch_nor_threads_change_what_beams_find(self):
        text = "\n".join(["a b c", "", "c c", "b", "a a a a a", "unknown words", "a b c a b c a b c a b c"] * 4)
        outputs = {self.translate(text, "--beam", 4, "--n-best", 4, "--batch", batch, "--threads", threads).bytes
                   for batch in (1, 2, 7, 64) for threads in (1, 2, 3)}
        self.assertEqual(len(outputs), 1)

    def test_without_a_length_penalty_the_score_is_the_log_probability(self):
        flags = ("--beam", 4, "--n-best", 4, "--scores")
        for line in self.translate("a b\n", *flags, "--length-penalty", 0).lines:
            self.assertEqual(line.split(" ||| ")[2], line.split(" ||| ")[3])
        self.assertNotEqual(self.translate("a b\n", *flags, "--length-penalty", 2).out,
                            self.translate("a b\n", *flags, "--length-penalty", 0).out)

    def test_a_refused_line_gives_one_empty_line_with_beams_too(self):
        result = self.translate(b"a\nc \xff\nb c\n", "--beam", 3, "--n-best", 2)
        self.assertEqual((result.code, result.lines[2]), (5, "1 |||  ||| 0.000000"), result)
        self.assertEqual(len(result.lines), 5)

    def test_coverage_changes_scores_and_needs_a_beam(self):
        flags = ("--beam", 4, "--n-best", 4, "--length-penalty", 0, "--scores")
        plain, covered = self.translate("a b c\n", *flags), self.translate("a b c\n", *flags, "--coverage-penalty", 0.5)
        for line in covered.lines:
            _, _, total, score = line.split(" ||| ")
            self.assertLessEqual(float(score), float(total))
        self.assertNotEqual(plain.lines, covered.lines)
        self.assertEqual(plain.bytes, self.translate("a b c\n", *flags, "--coverage-penalty", 0).bytes)
        self.assert_fails(self.translate("a\n", "--coverage-penalty", 0.5), 2, "--coverage-penalty", "--beam")
        for bad in (-1, 11, "nan", "x"):
            self.assert_fails(self.translate("a\n", "--beam", 2, f"--coverage-penalty={bad}"), 2,
                              "--coverage-penalty", "a number from 0 to 10")

    def test_samples_depend_on_the_seed_and_the_lines_number_alone(self):
        text = "a b c\n\nb\nc a\n" * 10
        draws = {self.translate(text, "--sample", "--batch", batch, "--threads", threads, "--seed", 3, "--scores").bytes
                 for batch in (1, 3, 64) for threads in (1, 3)}
        self.assertEqual(len(draws), 1)
        drawn = draws.pop().decode().split("\n")
        self.assertNotEqual(drawn, self.translate(text, "--sample", "--seed", 4, "--scores").lines)
        self.assertGreater(len(set(drawn[::4])), 3)  # ten times the same line
        greedy = self.translate(text, "--scores").bytes
        for flags in (("--temperature", 0), ("--top-k", 1), ("--top-p", 0)):
            self.assertEqual(self.translate(text, "--sample", *flags, "--scores").bytes, greedy)

    def test_R29_R32_bad_values_of_sampling_are_errors(self):
        for flag, values in (("--temperature", (-1, "nan", "inf", "x")), ("--top-k", (-1, 0.5, "x")),
                             ("--top-p", (-1, 1.5, "nan")), ("--repetition-penalty", (0, -1, "nan", "inf"))):
            for value in values:
                self.assert_fails(self.translate("a\n", "--sample", f"{flag}={value}"), 2, flag, "expected a")
            self.assert_fails(self.translate("a\n", f"{flag}=1"), 2, flag, "--sample")
        self.assert_fails(self.translate("a\n", "--sample", "--beam", 2), 2, "--sample", "--beam of 1", "2")

    def test_prefixes_stand_at_the_beginning(self):
        text, prefixes = "a b c\nb\n\nc\n", ["x y", "", "z", "z z"]
        file = self.file("prefixes", "\n".join(prefixes) + "\n")
        free = self.translate(text).lines
        for flags in ((), ("--beam", 3), ("--sample",)):
            result = self.translate(text, "--prefix", file, *flags)
            self.assertEqual((result.code, len(result.lines)), (0, 4), result)
            for line, prefix, source in zip(result.lines, prefixes, text.split("\n")):
                self.assertEqual(line[:len(prefix)] if source else line, prefix if source else "")
        self.assertEqual(self.translate(text, "--prefix", file).lines[1], free[1])

    def test_prefixes_that_are_missing_or_bad_are_named(self):
        result = self.translate("a\nb\n", "--prefix", self.file("one", "x\n"))
        self.assertEqual((result.code, len(result.lines)), (5, 1), result)
        self.assertIn("expected a prefix for each line of stdin, got 1", result.err)
        result = self.translate("a\n", "--prefix", self.file("two", "x\ny\n"))
        self.assertEqual((result.code, len(result.lines)), (5, 1), result)
        self.assertIn("got more", result.err)
        self.assert_fails(self.translate("a\n", "--prefix", self.folder / "none"), 5, "none")
        self.assert_alike_but(self.translate("a\nc\nb c\n", "--prefix", self.file("bad", b"\n\xff\n\n")), 1,
                              "bad:2", "invalid UTF-8")

    def test_alignments_are_links_of_words_a_line_for_each_line(self):
        text = b"a b c\n\nb \xff\nc a\n"
        for flags in ((), ("--beam", 3), ("--beam", 3, "--n-best", 2), ("--sample",)):
            result = self.translate(text, "--alignments", self.folder / "links", *flags)
            self.assertEqual(result.code, 5, result)
            links = (self.folder / "links").read_text().split("\n")
            self.assertEqual((len(links), links[1], links[2], links[4]), (5, "", "", ""))
            if "--n-best" in flags:
                continue
            for number, words in ((0, 3), (3, 2)):
                pairs = [tuple(map(int, pair.split("-"))) for pair in links[number].split()]
                self.assertEqual(pairs, sorted(set(pairs)))
                self.assertTrue(all(source < words for source, _ in pairs))
                self.assertEqual(sorted(target for _, target in pairs), list(range(len(result.lines[number].split()))))

    def test_alignments_that_cannot_be_written_are_an_error(self):
        self.assert_fails(self.translate("a\n", "--alignments", self.folder / "none" / "links"), 1, "none/links")
        result = self.translate("a\n", "--alignments", "/dev/full")
        self.assertEqual(result.code, 1, result)
        self.assertIn("--alignments: cannot write /dev/full: No space left", result.err)

    def test_bad_values_of_beams_are_errors(self):
        for flags, words in ((("--beam", 0), ("--beam", "0")), (("--beam", "x"), ("--beam", "x")),
                             (("--beam", 2, "--n-best", 3), ("--n-best", "at most 2", "3")),
                             (("--n-best", 2), ("--n-best", "at most 1", "--beam")),
                             (("--beam", 2, "--n-best", 0), ("--n-best", "0")),
                             (("--beam", 2, "--length-penalty", "nan"), ("--length-penalty", "-10 to 10"))):
            with self.subTest(flags):
                self.assert_fails(self.translate("a\n", *flags), 2, *words)

    def streaming(self, *flags):
        running = subprocess.Popen([PROGRAM, "translate", self.trained, *map(str, flags)], stdin=subprocess.PIPE,
                                   stdout=subprocess.PIPE, env=CLEAN)
        self.addCleanup(running.stdout.close)
        return running

    def test_each_answer_comes_before_the_next_line_is_written(self):
        for flags in ((), ("--beam", 3), ("--batch", 64, "--scores"), ("--sample", "--alignments", self.folder / "links")):
            lines = ["a b", "", "c c c b", "unknown words", "b"]
            answers = []
            with self.streaming(*flags) as running:
                for line in lines:
                    running.stdin.write(line.encode() + b"\n")
                    running.stdin.flush()
                    answers.append(running.stdout.readline().decode().removesuffix("\n"))
                running.stdin.close()
                self.assertEqual(running.stdout.read(), b"")
            self.assertEqual(running.returncode, 0)
            self.assertEqual(answers, self.translate("\n".join(lines), *flags).lines)

    def test_what_is_written_piece_by_piece_is_read_as_lines(self):
        with self.streaming() as running:
            answers = []
            for piece, ended in ((b"a ", 0), (b"b\nc", 1), (b"\nb c\n", 2), (b"c", 0)):
                running.stdin.write(piece)
                running.stdin.flush()
                answers += [running.stdout.readline() for _ in range(ended)]
            running.stdin.close()
            answers += running.stdout.readlines()
        self.assertEqual(b"".join(answers), self.translate("a b\nc\nb c\nc").bytes)

    def test_more_lines_than_are_read_at_once_keep_their_order(self):
        lines = [" ".join("abc"[(i + k) % 3] for k in range(i % 11)) for i in range(20_000)]  # over 64 KiB
        answers = dict(zip(lines, self.translate("\n".join(lines[:33])).lines))
        self.assertEqual(self.translate("\n".join(lines) + "\n").lines, [answers[line] for line in lines])

    def test_a_standard_input_that_cannot_be_read_is_an_error(self):
        folder = os.open("/", os.O_RDONLY)
        self.addCleanup(os.close, folder)
        done = subprocess.run([PROGRAM, "translate", self.trained], stdin=folder, capture_output=True, env=CLEAN)
        self.assertEqual(done.returncode, 5)
        self.assertIn(b"stdin: reading fails after line 0", done.stderr)


class Attention(TestCase):
    def setUp(self):
        super().setUp()
        self.trained = self.model()

    def draw(self, text, name):
        return rapt("translate", self.trained, "--attention", self.folder / name, stdin=text)

    def pictures(self):
        return sorted(p.name for p in self.folder.iterdir() if p.suffix in (".png", ".svg"))

    def test_one_line_gives_one_picture_with_its_words(self):
        result = self.draw("a b q\n", "look.svg")
        self.assertEqual((result.code, len(result.lines)), (0, 1), result)
        picture = (self.folder / "look.svg").read_text()
        for word in ("a", "b", "&lt;unk&gt;", "&lt;s&gt;", *result.lines[0].split()):
            self.assertIn(f">{word}<".replace("<unk>", "&lt;unk&gt;"), picture)
        self.assertIn("head 1", picture)
        self.draw("a", "look.png")
        self.assertTrue((self.folder / "look.png").read_bytes().startswith(b"\x89PNG"))
        self.assertEqual(self.pictures(), ["look.png", "look.svg"])

    def test_several_lines_give_one_each_under_the_lines_number(self):
        self.assertEqual(self.draw("a\n\nb c\nc\n", "look.svg").code, 0)
        self.assertEqual(self.pictures(), ["look-1.svg", "look-3.svg", "look-4.svg"])

    def test_the_translation_may_fill_all_positions(self):
        self.assertEqual(self.draw("a b c a b c a b c a b c\n", "look.svg").code, 0)
        self.assertEqual(self.pictures(), ["look.svg"])

    def test_other_endings_and_places_are_errors(self):
        result = self.draw("a\n", "look.gif")
        self.assert_fails(result, 2, ".png or .svg", "look.gif")
        self.assert_fails(self.draw("a\n", "none/look.svg"), 1, "--attention", "none")  # nothing is translated


if __name__ == "__main__":
    unittest.main()
