"""rapt evaluate: scores on stdout, by sacreBLEU's rules."""

import json
import subprocess
import unittest

from program import CLEAN, PROGRAM, TestCase, rapt

HYPOTHESES = "The cat sat on the mat.\nIt was raining all the day, so we stayed at home.\nHe said: \"I do not know\"!\n"
REFERENCE = "The cat is sitting on the mat.\nIt rained all day, so we stayed at home.\nHe said, \"I don't know!\"\n"


class Evaluate(TestCase):
    def setUp(self):
        super().setUp()
        self.reference = self.file("reference", REFERENCE)

    def evaluate(self, *flags, hypotheses=HYPOTHESES):
        return rapt("evaluate", "--reference", self.reference, *flags, stdin=hypotheses)

    def test_a_line_a_metric_with_its_signature(self):
        result = self.evaluate()
        self.assertEqual((result.code, result.err), (0, ""))
        bleu, chrf = result.lines
        self.assertRegex(bleu, r"^BLEU\|nrefs:1\|case:mixed\|eff:no\|tok:13a\|smooth:exp\|version:rapt-[\d.]+ = 43.30 "
                               r"76.7/48.1/33.3/28.6 \(BP = 1.000 ratio = 1.071 hyp_len = 30 ref_len = 28\)$")
        self.assertRegex(chrf, r"^chrF2\|nrefs:1\|case:mixed\|eff:yes\|nc:6\|nw:0\|space:no\|version:rapt-[\d.]+ = 58.89$")

    def test_flags_choose_metric_tokens_and_case(self):
        result = self.evaluate("--metrics", "chrf", "--word-order", "2", "--lowercase")
        self.assertEqual(len(result.lines), 1)
        self.assertTrue(result.out.startswith("chrF2++|nrefs:1|case:lc|eff:yes|nc:6|nw:2|"), result)
        result = self.evaluate("--metrics", "bleu", "--tokenize", "zh", "--smoothing", "add-k", "--smoothing-value", "0.5")
        self.assertIn("tok:zh|smooth:add-k[0.50]|", result.out)

    def test_several_references(self):
        other = self.file("other", HYPOTHESES)
        result = self.evaluate("--reference", other)
        self.assertIn("BLEU|nrefs:2|", result.out)
        self.assertIn(" = 100.00 ", result.out)

    def test_json_has_an_object_a_line(self):
        bleu, chrf = map(json.loads, self.evaluate("--json").lines)
        self.assertEqual((bleu["name"], bleu["score"]), ("BLEU", 43.3))
        self.assertEqual((chrf["name"], chrf["score"]), ("chrF2", 58.89))
        self.assertIn("nrefs:1|", bleu["signature"])

    def test_each_gives_a_line_for_each_line(self):
        lines = self.evaluate("--each").lines
        self.assertEqual(len(lines), 3)
        for line in lines:
            self.assertRegex(line, r"^\d+\.\d\d\t\d+\.\d\d$")

    def test_against_compares_two_systems(self):
        baseline = self.file("baseline", "cat mat\nrain\nhe knows\n")
        result = self.evaluate("--against", baseline, "--json", "--metrics", "bleu", "--samples", "200")
        compared = json.loads(result.out)
        self.assertIn("bs:200|seed:0|", compared["signature"])
        self.assertLess(compared["baseline"]["score"], compared["score"])
        self.assertTrue(0 < compared["p_value"] <= 1)
        self.assertIn(" p = ", self.evaluate("--against", baseline).out)
        self.assert_fails(self.evaluate("--against", baseline, "--each"), 2, "--against")

    def test_R39_crlf_and_a_byte_order_mark_change_nothing(self):
        plain = self.evaluate().out
        self.assertEqual(self.evaluate(hypotheses="\ufeff" + HYPOTHESES.replace("\n", "\r\n")).out, plain)

    def test_lengths_that_differ_and_empty_input_are_bad_data(self):
        self.assert_fails(self.evaluate(hypotheses="one\n"), 5, str(self.reference), "3 lines", "1;")
        self.assert_fails(self.evaluate(hypotheses=""), 5, "stdin", "empty")
        self.assert_fails(self.evaluate(hypotheses=b"\xff\nb\nc\n"), 5, "stdin:1", "UTF-8")
        self.assert_fails(rapt("evaluate", "--reference", self.folder / "none", stdin="a\n"), 5, "none")

    def test_references_are_read_before_anybody_writes(self):
        with subprocess.Popen([PROGRAM, "evaluate", "--reference", self.folder / "none"], stdin=subprocess.PIPE,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=CLEAN) as running:
            self.assertIn(b"none: cannot read it", running.stderr.read())  # while stdin is open
            self.assertEqual(running.wait(timeout=60), 5)

    def test_wrong_usage_is_named(self):
        self.assert_fails(rapt("evaluate", stdin="a\n"), 2, "--reference")
        self.assert_fails(self.evaluate("--tokenize", "14a"), 2, "--tokenize", "14a")
        self.assert_fails(self.evaluate("--metrics", "ter"), 2, "--metrics", "ter")


if __name__ == "__main__":
    unittest.main()
