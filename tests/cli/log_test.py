"""--log-format json: stderr is an object a line, and results stay what they are."""

import json
import re
import subprocess
import unittest

from program import CLEAN, PROGRAM, TestCase, rapt

JSON = ["--log-format", "json"]


def objects(text):
    """Every line, as the object that it is."""
    lines = text.split("\n")
    assert lines.pop() == "", text
    return [json.loads(line) for line in lines]


class Lines(TestCase):
    SOURCE_WORDS, TARGET_TOKENS = 13, 18

    def test_an_epoch_carries_its_numbers_as_fields(self):
        result = self.train(*JSON, "--epochs", "3")
        self.assertEqual((result.code, result.out), (0, ""))
        lines = objects(result.err)
        for line in lines:
            self.assertEqual(list(line)[:3], ["time", "level", "message"])
            self.assertEqual(line["level"], "info")
            self.assertRegex(line["time"], r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$")
        epochs = [line for line in lines if "epoch" in line]
        self.assertEqual([line["epoch"] for line in epochs], [1, 2, 3])
        plain = re.findall(r"(?m)^(epoch .*?tokens/s).*", self.train("--epochs", "3").err)
        self.assertEqual(len(plain), 3)
        for line, text in zip(epochs, plain):
            self.assertEqual(line["message"].split("  ")[:2], text.split("  ")[:2])
            self.assertEqual(f"{line['loss']:.4f}", text.split()[3])
            self.assertEqual((line["epochs"], line["batch"], line["steps"]), (3, line["batches"], 3 * line["batches"]))
            self.assertEqual(line["step"], line["epoch"] * line["batches"])
            for field in ("last_loss", "learning_rate", "tokens_per_s", "seconds"):
                self.assertGreater(line[field], 0, field)
        self.assertEqual(epochs[-1]["tokens"], 3 * (13 + 5))  # the words of the target and an end each
        self.assertEqual(epochs[-1]["seconds_left"], 0)

    def test_the_corpus_the_model_and_the_folder_are_fields(self):
        lines = objects(self.train(*JSON, source="a b\n\nc\n", target="x\ny\nz\n").err)
        self.assertEqual({"pairs": 2, "empty_pairs": 1, "too_long_pairs": 0, "source_vocabulary": 7,
                          "target_vocabulary": 7}.items() - lines[0].items(), set())
        self.assertGreater(lines[1]["parameters"], 1000)
        self.assertEqual((lines[-2]["folder"], lines[-2]["stopped_early"]), (str(self.folder / "model"), False))

    def test_results_are_untouched_and_refused_lines_are_warnings(self):
        model = self.model()
        text = b"a b\n\xff\nc\n" + b"a " * 20 + b"\n"
        plain, logged = rapt("translate", model, stdin=text), rapt("translate", model, *JSON, stdin=text)
        self.assertEqual((logged.code, logged.bytes), (5, plain.bytes))
        lines = objects(logged.err)
        self.assertEqual([line.get("line") for line in lines if line["level"] == "warning"], [2, 4])
        self.assertEqual((lines[-1]["refused"], lines[-1]["lines"]), (2, 4))
        for line, said in zip(lines, plain.err.splitlines()):
            self.assertEqual(said.removeprefix("rapt: "), line["message"])

    def test_quiet_and_verbose(self):
        model = self.model()
        self.assertEqual(self.train(*JSON, "--quiet").err, "")
        self.assertEqual(objects(rapt("inspect", model, *JSON).err), [])
        self.assertEqual({line["level"] for line in objects(rapt("inspect", model, *JSON, "-v").err)}, {"debug"})

    def test_a_bar_becomes_lines_and_none_stays_none(self):
        for how in ("auto", "bar", "plain"):
            with self.subTest(how):
                lines = objects(self.train(*JSON, "--progress", how).err)
                self.assertEqual([line["epoch"] for line in lines if "epoch" in line], [1, 2])
        self.assertFalse(any("epoch" in line for line in objects(self.train(*JSON, "--progress", "none").err)))

    def test_a_profile_is_an_object_an_operation(self):
        rows = {line["operation"]: line for line in objects(self.train(*JSON, "--profile").err) if "operation" in line}
        for name in ("linear", "attention backward", "optimizer"):
            self.assertGreater(rows[name]["calls"], 0)
            self.assertGreater(rows[name]["seconds"], 0)
        for name, row in rows.items():
            self.assertGreater(row["bytes"], 0, name)
        products = 2 * 3 * 16 * 16 * (self.SOURCE_WORDS + 2 * self.TARGET_TOKENS)  # of the projections alone
        self.assertGreater(rows["linear"]["flop"], products)
        self.assertEqual(rows["linear dx"]["flop"], rows["linear"]["flop"])
        self.assertGreater(rows["attention backward"]["flop"], 2 * rows["attention"]["flop"])

    def test_the_environment_asks_for_it_and_the_flag_wins(self):
        model, told = self.model(), {"RAPT_LOG_FORMAT": "json"}
        self.assertEqual(objects(rapt("inspect", model, "-v", env=told).err)[0]["level"], "debug")
        self.assertTrue(rapt("inspect", model, "-v", "--log-format", "text", env=told).err.startswith("rapt 0."))


class Errors(TestCase):
    def assert_error(self, result, code, kind, *words):
        self.assertEqual((result.code, result.bytes), (code, b""), result)
        last = objects(result.err)[-1]
        self.assertEqual((last["level"], last["kind"], last["exit_code"]), ("error", kind, code))
        for word in words:
            self.assertIn(word, last["message"])
        return last

    def test_each_kind_is_named_with_its_exit_code(self):
        none = self.folder / "none"
        self.assert_error(self.train(*JSON, "--nhead", "3"), 3, "config", "nhead 3")
        self.assert_error(rapt("inspect", none, *JSON), 4, "model", "none")
        self.assert_error(self.train(*JSON, target="x\n"), 5, "data", "line 2")
        self.assert_error(self.train(*JSON, "--learning-rate", "1e30", "--epochs", "9"), 6, "diverged")
        self.assert_error(self.train(*JSON, "--max-memory", "1M", "--d-model", "256"), 7, "memory", "1.0 MiB")
        self.assert_error(self.train(*JSON, "--quiet", target="x\n"), 5, "data", "line 2")
        with open("/dev/full", "wb") as full:
            done = subprocess.run([PROGRAM, "--help", *JSON], stdout=full, stderr=subprocess.PIPE, env=CLEAN)
        self.assertEqual(json.loads(done.stderr)["kind"], "failure")

    def test_a_wrong_command_line_too_wherever_the_flag_stands(self):
        for arguments in (["train", "--sorce", "a", *JSON], ["--log-format=json", "train", "--sorce", "a"],
                          [*JSON, "train", "--sorce"]):
            with self.subTest(arguments):
                error = self.assert_error(rapt(*arguments), 2, "usage", "did you mean --source?")
                self.assertEqual(error["hint"], "rapt train --help")
        self.assert_error(rapt("trian", env={"RAPT_LOG_FORMAT": "json"}), 2, "usage", "train")
        self.assertTrue(rapt("trian", "--log-format", "xml").err.startswith("rapt: "))

    def test_bytes_that_are_no_text_become_a_character(self):
        self.assert_error(rapt("inspect", b"no\xffne".decode(errors="surrogateescape"), *JSON), 4, "model", "no\ufffdne")


if __name__ == "__main__":
    unittest.main()
