"""`rapt bench translate` from outside: its line, and what it refuses."""

import json
import os
import subprocess
import unittest

RAPT = os.environ["RAPT_PROGRAM"]
KEYS = ["case", "dtype", "beam", "batch", "threads", "step_ms", "min", "max", "tokens_per_s", "range",
        "first_token_ms", "flops_per_s", "fraction_of_peak", "rss_mib"]


def bench(*arguments):
    done = subprocess.run([RAPT, "bench", "translate", *arguments], capture_output=True, text=True,
                          timeout=300)
    return done.returncode, done.stdout, done.stderr


class BenchTranslate(unittest.TestCase):
    def line(self, *arguments):
        code, out, err = bench(*arguments)
        self.assertEqual((code, err), (0, ""))
        self.assertEqual(out.count("\n"), 1)
        return json.loads(out)

    def test_prints_one_line_with_what_decoding_takes(self):
        line = self.line("--steps", "1", "--batch", "96", "--threads", "2", "--json")
        self.assertEqual(list(line), KEYS)
        self.assertEqual([line[key] for key in KEYS[:5]], ["translate", "f32", 1, 96, 2])
        self.assertLessEqual(line["min"], line["step_ms"])
        self.assertLessEqual(line["step_ms"], line["max"])
        # 96 sentences of 28 tokens in step_ms.
        self.assertAlmostEqual(line["tokens_per_s"] * line["step_ms"] / 1e3, 96 * 28, delta=30)
        least, most = line["range"]
        self.assertLessEqual(least, line["tokens_per_s"])
        self.assertLessEqual(line["tokens_per_s"], most)
        self.assertGreater(line["first_token_ms"], 0)
        self.assertLess(line["first_token_ms"], line["step_ms"])
        # The weights alone are 92 M numbers.
        self.assertGreater(line["rss_mib"], 350)

    def test_wrong_flags_are_usage_errors(self):
        for arguments, word in ((["--beam", "0"], "--beam"), (["--batch", "0"], "--batch"),
                                (["--dropout", "0.1"], "--dropout"), (["--init", "x"], "--init"),
                                (["--lengths", "8"], "--lengths"), (["--dtype", "f16"], "--dtype")):
            code, out, err = bench(*arguments)
            self.assertEqual((code, out), (2, ""), arguments)
            self.assertIn(word, err)

    def test_its_flags_are_none_of_the_other_cases(self):
        for case in ("toy", "sdpa", "machine"):
            done = subprocess.run([RAPT, "bench", case, "--beam", "2"], capture_output=True, text=True,
                                  timeout=60)
            self.assertEqual(done.returncode, 2)
            self.assertIn("--beam belongs to translate", done.stderr)


if __name__ == "__main__":
    unittest.main()
