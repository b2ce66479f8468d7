"""Flags, verbs and exit codes of the program, whatever the verb does."""

import json
import os
import random
import re
import struct
import subprocess
import unittest

from program import CLEAN, PROGRAM, SOURCE_TEXT, TARGET_TEXT, TestCase, rapt, safetensors_file, snapshot

VERBS = ["demo", "train", "config", "translate", "inspect", "forward", "bench"]


class Help(unittest.TestCase):
    def test_help_goes_to_stdout_and_names_every_verb(self):
        result = rapt("--help")
        self.assertEqual((result.code, result.err), (0, ""))
        for verb in VERBS:
            self.assertRegex(result.out, rf"(?m)^  {verb} ")
        self.assertIn("Example", result.out)

    def test_every_verb_has_help_with_an_example(self):
        for verb in VERBS:
            with self.subTest(verb):
                result = rapt(verb, "--help")
                self.assertEqual((result.code, result.err), (0, ""))
                self.assertIn(f"Usage: rapt {verb}", result.out)
                self.assertRegex(result.out, rf"Examples?:\n.*rapt {verb}")
                self.assertIn("Flags of every verb", result.out)

    def test_every_global_flag_is_explained(self):
        shown = rapt("--help").out
        for flag in ("--threads N", "--isa NAME", "--max-memory SIZE", "--profile", "--seed N", "--quiet", "-v,--verbose",
                     "--log-format HOW", "--progress HOW", "--color WHEN", "--version"):
            self.assertIn(f"  {flag}", shown)
        for name in ("THREADS", "ISA", "MAX_MEMORY", "PROFILE", "SEED", "QUIET", "VERBOSE", "LOG_FORMAT", "PROGRESS", "COLOR"):
            self.assertIn(f"RAPT_{name}", shown)

    def test_version(self):
        for arguments in (["--version"], ["train", "--version"]):
            result = rapt(*arguments)
            self.assertEqual((result.code, result.err), (0, ""))
            self.assertRegex(result.out, r"^rapt \d+\.\d+\.\d+\n$")


class WrongUsage(TestCase):
    def test_a_misspelt_name_is_told_the_nearest(self):
        for arguments, nearest in ((["trian"], "train"), (["trian", "--source", "a"], "train"), (["train", "--sorce", "a"], "--source"),
                                   (["demo", "--ofical"], "--official"), (["demo", "--thread", "2"], "--threads"),
                                   (["translate", "m", "--scroes"], "--scores"),
                                   (["--quite", "demo"], "--quiet"), (["train", "--epoch=3"], "--epochs")):
            with self.subTest(arguments):
                self.assert_fails(rapt(*arguments), 2, f"did you mean {nearest}?")

    def test_a_name_that_resembles_nothing_is_only_refused(self):
        result = rapt("demo", "--xyzzy")
        self.assert_fails(result, 2, "unknown flag --xyzzy")
        self.assertNotIn("mean", result.err)

    def test_what_is_missing_or_too_much_is_named(self):
        self.assert_fails(rapt(), 2, "expected a verb: demo, train, ")
        self.assert_fails(rapt("translate"), 2, "translate: expected DIR (a model folder, as train writes it)")
        self.assert_fails(rapt("train"), 2, "train: expected --source FILE, --target FILE and --out DIR")
        self.assert_fails(rapt("train", "--source", "a", "--target", "b"), 2, "expected --out DIR (the folder of the run")
        self.assert_fails(rapt("inspect", "a", "b"), 2, "unknown argument b")
        self.assert_fails(rapt("demo", "here"), 2, "demo: unknown argument here")
        self.assert_fails(rapt("demo", "--out"), 2, "--out: expected DIR after it, got nothing")

    def test_a_verb_that_is_a_flag_is_told_so(self):
        self.assert_fails(rapt("help"), 2, "did you mean --help?")
        self.assert_fails(rapt("version"), 2, "did you mean --version?")

    def test_a_bad_value_is_2_and_names_flag_and_value(self):
        train = ["train", "--source", "a", "--target", "b", "--out", "c"]
        for arguments, flag, value in (
                (["--threads", "0", "demo"], "--threads", "0"), (["demo", "--threads", "two"], "--threads", "two"),
                (["demo", "--seed", "-1"], "--seed", "-1"), (["demo", "--progress", "fast"], "--progress", "fast"),
                (["demo", "--color", "red"], "--color", "red"), (["demo", "--isa", "avx9"], "--isa", "avx9"),
                (["demo", "--max-memory", "3Q"], "--max-memory", "3Q"),
                (["demo", "--max-memory", "-1"], "--max-memory", "-1"),
                (["demo", "--max-memory", "0"], "--max-memory", "0"),
                (["demo", "--max-memory", "inf"], "--max-memory", "inf"),
                (["demo", "--epochs", "0"], "--epochs", "0"), (train + ["--epochs", "1.5"], "--epochs", "1.5"),
                (train + ["--dropout", "1"], "--dropout", "1"), (train + ["--dropout", "nan"], "--dropout", "nan"),
                (train + ["--label-smoothing", "1"], "--label-smoothing", "1"),
                (train + ["--learning-rate", "inf"], "--learning-rate", "inf"),
                (train + ["--learning-rate", "0"], "--learning-rate", "0"),
                (train + ["--nhead", "0"], "--nhead", "0"), (train + ["--d-model", "1e3"], "--d-model", "1e3"),
                (train + ["--layers", "-1"], "--layers", "-1"), (train + ["--max-len", "1"], "--max-len", "1"),
                (train + ["--warmup", "99999999999999999999"], "--warmup", "99999999999999999999"),
                (train + ["--invalid-utf8", "drop"], "--invalid-utf8", "drop"),
                (["translate", "m", "--batch", "0"], "--batch", "0"),
                (["translate", "m", "--max-length", "0"], "--max-length", "0"),
                (["forward", "m", "--in", "a", "--out", "b", "--train", "x"], "--train", "x"),
                (["bench", "toy", "--steps", "0"], "--steps", "0")):
            with self.subTest(arguments):
                self.assert_fails(rapt(*arguments), 2, flag, value)

    def test_an_unknown_case_of_bench_is_2(self):
        self.assert_fails(rapt("bench", "giant"), 2, "giant", "small")


class Globals(TestCase):
    def test_stand_before_and_after_the_verb_and_the_later_one_wins(self):
        model = self.model()
        for arguments in (["-v", "--threads", "1", "inspect", model], ["inspect", model, "--threads", "1", "-v"],
                          ["--threads", "2", "inspect", "-v", model, "--threads", "1"]):
            with self.subTest(arguments):
                result = rapt(*arguments)
                self.assertEqual(result.code, 0, result)
                self.assertIn("1 threads", result.err)

    def test_the_environment_gives_defaults_that_flags_override(self):
        model = self.model()
        told = {"RAPT_THREADS": "1"}
        self.assertIn("1 threads", rapt("-v", "inspect", model, env=told).err)
        self.assertIn("2 threads", rapt("-v", "inspect", model, "--threads", "2", env=told).err)
        self.assertEqual(self.train(env={"RAPT_QUIET": "1"}).err, "")
        self.assertIn("operation", self.train("--quiet", env={"RAPT_PROFILE": "true"}).err)
        self.assertIn("2 threads", rapt("inspect", model, "--threads", "2", env={"RAPT_VERBOSE": "1"}).err)

    def test_a_bad_value_in_the_environment_names_the_variable(self):
        for name, value in (("THREADS", "many"), ("ISA", "avx9"), ("MAX_MEMORY", "3Q"), ("SEED", "-1"), ("PROFILE", "maybe"),
                            ("QUIET", "maybe"), ("VERBOSE", "maybe"), ("LOG_FORMAT", "xml"), ("PROGRESS", "fast"),
                            ("COLOR", "red")):
            with self.subTest(name):
                self.assert_fails(rapt("inspect", "m", env={f"RAPT_{name}": value}), 2, f"RAPT_{name}: expected ", value)
        self.assert_fails(rapt("inspect", "m", "--threads", "0", env={"RAPT_THREADS": "many"}), 2, "--threads: ", '"0"')

    def test_memory_may_be_bounded_by_the_environment(self):
        self.assert_fails(rapt("demo", "--out", self.folder / "d", "--quiet", env={"RAPT_MAX_MEMORY": "20M"}), 7, "20.0 MiB")

    def test_quiet_leaves_results_and_errors(self):
        self.assertEqual(self.train("--quiet").err, "")
        self.assert_fails(rapt("inspect", self.folder / "none", "--quiet"), 4, "none")

    def test_memory_over_the_limit_is_7(self):
        result = self.train("--max-memory", "1M", "--d-model", "256")
        self.assertEqual(result.code, 7, result)
        self.assertRegex(result.err, r"rapt: memory: .*over the limit of 1\.0 MiB")
        self.assertFalse((self.folder / "model").exists())
        self.assertEqual(self.train("--max-memory", "1G").code, 0)

    def test_a_batch_that_does_not_fit_is_refused_before_the_first_step_with_one_that_does(self):
        rng = random.Random(3)
        text = "".join(" ".join(rng.choices("abcdefgh", k=30)) + "\n" for _ in range(300))
        for name in ("long.a", "long.b"):
            (self.folder / name).write_text(text)
        train = ["train", "--source", self.folder / "long.a", "--target", self.folder / "long.b", "--out",
                 self.folder / "long", "--d-model", "128", "--dim-feedforward", "512", "--layers", "2", "--epochs", "1"]
        refused = rapt(*train, "--batch-tokens", "8000", "--max-memory", "80M")
        self.assertEqual(refused.code, 7, refused)
        found = re.search(r"a batch of (\d+) tokens does not fit in the limit of 80.0 MiB; one of (\d+) does "
                          r"\(--batch-tokens\), and less is needed with --recompute", refused.err)
        self.assertTrue(found, refused)
        self.assertNotIn("epoch", refused.err)
        self.assertFalse((self.folder / "long" / "model.safetensors").exists())
        fitting = rapt(*train, "--batch-tokens", found[2], "--max-memory", "80M")
        self.assertEqual(fitting.code, 0, fitting)
        limited = (self.folder / "long" / "model.safetensors").read_bytes()
        self.assertEqual(rapt(*train, "--batch-tokens", found[2], "--restart").code, 0)
        self.assertEqual((self.folder / "long" / "model.safetensors").read_bytes(), limited)

    def test_profile_is_a_table_on_stderr(self):
        result = self.train("--profile")
        self.assert_profile(result, "linear", "linear dw", "attention backward", "optimizer")

    def assert_profile(self, result, *operations):
        self.assertEqual(result.code, 0, result)
        self.assertRegex(result.err, r"(?m)^operation +calls +ms +GFLOP +GB +GFLOP/s +GB/s$")
        for name in operations:
            self.assertRegex(result.err, rf"(?m)^{name} +\d+ +[\d.]+( +([\d.]+|-)){{4}}$")

    def test_every_verb_that_computes_has_a_profile(self):
        model = self.model()
        self.assert_profile(rapt("translate", model, "--profile", stdin="a b\n"), "linear", "attention", "log_sum_exp")
        self.assert_profile(rapt("bench", "toy", "--steps", "1", "--profile"), "linear dx", "attention backward")
        demo = rapt("demo", "--epochs", "1", "--out", self.folder / "demo", "--profile")
        self.assert_profile(demo, "linear dx", "attention backward", "embedding")
        tensors = {name: ("I64", [1, 2], struct.pack("<2q", 1, 2)) for name in ("src", "tgt")}
        safetensors_file.write(self.folder / "in.safetensors", tensors)
        run = rapt("forward", model, "--in", self.folder / "in.safetensors", "--out", self.folder / "out.safetensors", "--profile")
        self.assert_profile(run, "linear", "attention", "embedding")

    def test_the_seed_decides_the_weights(self):
        weights = []
        for seed in ("1", "1", "2"):
            weights.append((self.model("--seed", seed, out="m") / "model.safetensors").read_bytes())
        self.assertEqual(weights[0], weights[1])
        self.assertNotEqual(weights[0], weights[2])

    def test_an_instruction_set_can_be_asked_for(self):
        model = self.model()
        self.assertIn(", scalar", rapt("-v", "inspect", model, "--isa", "scalar").err)

    def test_an_instruction_set_binds_oneDNN_too(self):
        for name, theirs in (("scalar", "Intel SSE4.1"), ("sse4", "Intel SSE4.1"), ("avx2", "Intel AVX2")):
            with self.subTest(name):
                result = self.train("--isa", name, "--d-model", "64", "--batch-tokens", "4096",
                                    source=SOURCE_TEXT * 200, target=TARGET_TEXT * 200, env={"DNNL_VERBOSE": "1"})
                if name == "avx2" and result.code != 0:
                    self.assertIn("has at most", result.err)
                    self.skipTest("this CPU has no AVX2")
                self.assertEqual(re.findall(r"(?m)^onednn_verbose,info,cpu,isa:(.*)$", result.out), [theirs], result)


class Streams(TestCase):
    def test_stdout_that_takes_nothing_is_1(self):
        model = self.model()
        for arguments in (["inspect", model], ["--help"], ["--version"], ["translate", model]):
            with self.subTest(arguments), open("/dev/full", "wb") as full:
                done = subprocess.run([PROGRAM, *map(str, arguments)], stdout=full, stderr=subprocess.PIPE, env=CLEAN,
                                      input=b"a b\n")
                self.assertEqual(done.returncode, 1, done.stderr)
                self.assertRegex(done.stderr.decode(), r"^rapt: cannot write to stdout: .+\n$")

    def test_R42_a_reader_that_went_away_is_1_and_no_signal(self):
        model = self.model()
        reading, writing = os.pipe()
        os.close(reading)
        try:
            done = subprocess.run([PROGRAM, "translate", model], stdout=writing, stderr=subprocess.PIPE, env=CLEAN,
                                  input=b"a b\n" * 200)
        finally:
            os.close(writing)
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn(b"cannot write to stdout", done.stderr)

    def closed(self, redirection, *arguments):
        return subprocess.run(["sh", "-c", f'exec "$0" "$@" {redirection}', PROGRAM, *map(str, arguments)],
                              capture_output=True, env=CLEAN, stdin=subprocess.DEVNULL)

    def test_a_closed_stdout_is_1(self):
        done = self.closed(">&-", "inspect", self.model())
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn(b"cannot write to stdout", done.stderr)

    def test_no_file_of_ours_takes_the_place_of_a_closed_stream(self):
        model = self.model()
        args = ["train", "--source", self.folder / "source.txt", "--target", self.folder / "target.txt", "--layers", "1"]
        done = self.closed("<&- >&- 2>&-", *args, "--d-model", "8", "--nhead", "2", "--epochs", "2", "--restart", "--out", model)
        self.assertEqual(done.returncode, 0)
        self.assertEqual(rapt("inspect", model).code, 0)
        self.assertNotIn(b"epoch", b"".join(snapshot(model).values()))

    def test_messages_that_nobody_takes_do_not_end_a_run(self):
        with open("/dev/full", "wb") as full:
            done = subprocess.run([PROGRAM, "inspect", self.model(), "-v", "--profile"], stderr=full, env=CLEAN,
                                  stdout=subprocess.PIPE)
            self.assertEqual(done.returncode, 0)
            self.assertIn(b"parameters", done.stdout)
            done = subprocess.run([PROGRAM, "inspect", self.folder / "none"], stderr=full, env=CLEAN)
            self.assertEqual(done.returncode, 4)

    def test_translating_from_a_folder_or_a_closed_stdin_is_5(self):
        model = self.model()
        descriptor = os.open(self.folder, os.O_RDONLY)
        try:
            done = subprocess.run([PROGRAM, "translate", model], stdin=descriptor, capture_output=True, env=CLEAN)
        finally:
            os.close(descriptor)
        self.assertEqual((done.returncode, done.stdout), (5, b""), done.stderr)
        done = subprocess.run(["sh", "-c", f'exec "$0" translate "$1" <&-', PROGRAM, model], capture_output=True, env=CLEAN)
        self.assertEqual((done.returncode, done.stdout), (5, b""), done.stderr)


class Bench(unittest.TestCase):
    def test_a_case_is_one_json_line(self):
        result = rapt("bench", "toy", "--steps", "2", "--threads", "2")
        self.assertEqual(result.code, 0, result)
        self.assertEqual(len(result.lines), 1)
        case = json.loads(result.out)
        for key in ("case", "dtype", "threads", "step_ms", "min", "max", "tokens_per_s", "flops_per_s",
                    "fraction_of_peak", "rss_mib", "loss"):
            self.assertIn(key, case)
        self.assertEqual((case["case"], case["dtype"], case["threads"]), ("toy", "f32", 2))
        self.assertEqual(len(case["loss"]), 4)
        self.assertLess(case["loss"][3], case["loss"][0])

    def test_bf16_begins_at_the_loss_of_f32(self):
        f32, bf16 = (json.loads(rapt("bench", "toy", "--steps", "1", "--dtype", dtype).out) for dtype in ("f32", "bf16"))
        self.assertEqual(bf16["dtype"], "bf16")
        self.assertNotEqual(bf16["loss"], f32["loss"])
        self.assertLess(abs(bf16["loss"][0] - f32["loss"][0]), 0.01 * f32["loss"][0])

    def test_attention_alone_in_bf16(self):
        result = rapt("bench", "sdpa", "--lengths", "128", "--steps", "1", "--dtype", "bf16")
        self.assertEqual(result.code, 0, result)
        self.assertEqual([json.loads(line)["dtype"] for line in result.lines], ["bf16"] * 8)


if __name__ == "__main__":
    unittest.main()
