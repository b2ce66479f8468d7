"""Flags, help and exit codes of the program."""

import json
import re

from program import ProgramTest, run


class Usage(ProgramTest):
    def test_help_of_every_verb_has_an_example(self):
        code, out, err = run("--help")
        self.assertEqual(code, 0)
        verbs = re.findall(r"^  (\w+) ", out.split("Subcommands:")[1].split("Examples:")[0], re.M)
        self.assertEqual(sorted(verbs), ["bench", "demo", "forward", "inspect", "train", "translate"])
        for verb in verbs:
            code, out, err = run(verb, "--help")
            self.assertEqual((code, err), (0, ""))
            self.assertIn("Example", out)
            self.assertIn(f"rapt {verb}", out)

    def test_version_is_one_line(self):
        self.assertRegex(self.expect(0, "--version"), r"^rapt \d+\.\d+\.\d+\n$")

    def test_misspelt_flags_and_verbs_name_the_nearest(self):
        self.expect(2, "demo", "--epoch", "3", says=["--epoch", "did you mean --epochs?"])
        self.expect(2, "translat", says=["did you mean translate?"])
        self.expect(2, says=["subcommand"])

    def test_a_bad_value_is_2(self):
        self.expect(2, "demo", "--epochs", "many", says=["many"])
        self.expect(2, "--threads", "0", "demo", says=["threads"])
        self.expect(2, "demo", "--isa", "mmx", says=["scalar, sse4, avx2", "mmx"])
        self.expect(2, "demo", "--max-memory", "lots", says=["lots"])
        self.expect(2, "bench", "nothing", says=["toy"])

    def test_contradicting_flags_are_3(self):
        self.train("--nhead", "3", code=3, says=["nhead 3 does not divide d_model 16"])
        self.assertFalse((self.folder / "model").exists())

    def test_over_the_memory_limit_is_7(self):
        self.expect(7, "demo", "--max-memory", "20M", "--out", self.folder / "d", says=["memory"])

    def test_a_bench_case_is_one_json_line(self):
        out = self.expect(0, "bench", "toy", "--steps", "1", "--threads", "2", "--json")
        line = json.loads(out)
        for key in ("case", "dtype", "threads", "step_ms", "min", "max", "tokens_per_s", "flops_per_s",
                    "fraction_of_peak", "rss_mib", "loss"):
            self.assertIn(key, line)
        self.assertEqual(line["case"], "toy")
        self.assertEqual(len(line["loss"]), 4)

    def test_profile_is_a_table_on_stderr(self):
        a, b = self.corpus()
        model = self.train()
        code, out, err = run("translate", model, "--profile", stdin="a b\n")
        self.assertEqual(code, 0)
        self.assertIn("linear", err)
        self.assertEqual(out.count("\n"), 1)
