"""Settings from files, the environment and flags: rapt config, and rapt train CONFIG.yaml."""

import json
import re
import shlex
import subprocess
import unittest

from program import CLEAN, PROGRAM, SOURCE, SOURCE_TEXT, TARGET_TEXT, TestCase, rapt

SMALL = """# a model that trains in milliseconds
d-model: 16
nhead: 2
dim-feedforward: 32
layers: 1
max-len: 12
warmup: 0
epochs: 2
"""


def values(text):
    """{key: (value, origin)} of a dump."""
    return {m[1]: (m[2], m[3]) for m in re.finditer(r"(?m)^([a-z0-9-]+): (.*?) +# (.*)$", text)}


class Configured(TestCase):
    def setUp(self):
        super().setUp()
        self.file("source.txt", SOURCE_TEXT)
        self.file("target.txt", TARGET_TEXT)
        self.config = self.file("small.yaml", SMALL + "source: source.txt\ntarget: target.txt\n")

    def dump(self, *arguments, **how):
        result = rapt("config", "dump", *arguments, **how)
        self.assertEqual((result.code, result.err), (0, ""), result)
        return values(result.out)

    def assert_same_settings(self, a, b):
        self.assertEqual({key: value for key, (value, _) in a.items()}, {key: value for key, (value, _) in b.items()})


class Dump(Configured):
    def test_says_where_each_value_came_from_and_later_wins(self):
        other = self.file("other.yaml", "d-model: 24\nlayers: 2\nnhead: 3\npreset: tiny\n")
        got = self.dump(self.config, other, "--set", "label-smoothing=0.2", "--layers", "3", "--seed", "5",
                        env={"RAPT_NHEAD": "4", "RAPT_LAYERS": "7", "RAPT_MOMENTUM": "0.5"})
        for key, wanted in {"d-model": ("24", f"{other}:1"), "nhead": ("4", "RAPT_NHEAD"), "layers": ("3", "--layers"),
                            "dropout": ("0.3", "preset tiny"), "dim-feedforward": ("32", f"{self.config}:4"),
                            "beta2": ("0.98", "built in"), "label-smoothing": ("0.2", "--set"), "seed": ("5", "--seed"),
                            "momentum": ("0.5", "RAPT_MOMENTUM"), "preset": ("tiny", f"{other}:4"),
                            "source": (str(self.folder / "source.txt"), f"{self.config}:9"),
                            "norm-first": ("false", "built in")}.items():
            self.assertEqual(got[key], wanted, key)

    def test_of_two_flags_the_last_wins_however_they_are_spelt(self):
        self.assertEqual(self.dump("--set", "dropout=0.2", "--dropout", "0.3")["dropout"], ("0.3", "--dropout"))
        self.assertEqual(self.dump("--dropout", "0.3", "--set", "dropout=0.2")["dropout"], ("0.2", "--set"))
        self.assertEqual(self.dump("--set", "norm-first=true", "--set", "dropout=0.2", "--set=dropout=0.4")["dropout"],
                         ("0.4", "--set"))

    def test_loads_again_to_the_same_settings(self):
        for flags in ([], ["--preset", "base"], ["--preset", "big", "--schedule", "noam"],
                      ["--preset", "base", "--schedule", "inverse_sqrt"],
                      [self.config, "--norm-first", "--steps", "9", "--minutes", "0.5"],
                      [self.config, "--set", "columns=2,1", "--valid-source", "it's: a \"file\" # ü", "--seed", "77"]):
            with self.subTest(flags):
                first = rapt("config", "dump", *flags)
                again = self.file("again.yaml", first.out)
                self.assert_same_settings(self.dump(again), values(first.out))
                self.assertEqual(rapt("config", "check", again).code, 0)

    def test_takes_the_arguments_of_train_and_a_run(self):
        run = self.folder / "run"
        flags = [self.config, "--dropout", "0.2", "--out", run]
        self.assertEqual(rapt("train", *flags, "--seed", "3").code, 0)
        merged = self.dump("--resume", run)
        self.assert_same_settings(merged, self.dump(*flags, "--seed", "3"))
        self.assertEqual(merged["dropout"], ("0.2", "--dropout"))
        self.assertEqual(merged["d-model"], ("16", f"{self.config}:2"))
        self.assert_fails(rapt("config", "dump", "--resume", self.folder / "none"), 4, "no run")

    def test_wrong_flags_are_2_and_wrong_files_3(self):
        self.assert_fails(rapt("config", "dump", "--dropout", "2"), 2, "--dropout", "[0, 1)")
        self.assert_fails(rapt("config", "dump", "--set", "dropout=2"), 2, "--set: dropout: expected a number in [0, 1)")
        self.assert_fails(rapt("config", "dump", "--set", "dropuot=0.2"), 2, "--set: unknown key dropuot; did you mean dropout?")
        self.assert_fails(rapt("config", "dump", "--set", "dropout"), 2, "key=value", "got dropout")
        self.assert_fails(rapt("config", "dump", "--set", "out=x"), 2, "--out")
        self.assert_fails(rapt("config", "dump", env={"RAPT_DROPOUT": "2"}), 2, "RAPT_DROPOUT: expected a number in [0, 1)")
        self.assert_fails(rapt("config", "dump", env={"RAPT_DROPUOT": "0"}), 2, "did you mean RAPT_DROPOUT?")
        self.assert_fails(rapt("config", "dump", self.folder / "none.yaml"), 3, "none.yaml")
        self.assert_fails(rapt("config", "dump", self.folder), 3, "directory")
        self.assert_fails(rapt("config", "dump", self.file("a.yaml", "dropuot: 1\nx: 1\n")), 3, "a.yaml:1: ", "and 1 more")

    def test_variables_of_others_do_not_disturb(self):
        others = {"RAPT_DATA_DIR": "/d", "RAPT_SOURCE_DIR": "/s", "RAPT_BINARY_DIR": "/b", "RAPT_PROGRAM": "p", "RAPT_FONT": "f",
                  "RAPT_TEST_ISA": "sse4", "RAPT_REQUIRE_DATA": "1", "RAPT_SOAK_KILLS": "1", "RAPT_SKIP_MEMORY_FIGURES": "1",
                  "RAPT_GOLDEN_DIR": "/g", "RAPT_THREADS": "1", "RAPT_ISA": "sse4", "RAPT_MAX_MEMORY": "1G", "RAPT_OUT": "/o",
                  "RAPT_PROFILE": "0", "RAPT_QUIET": "0", "RAPT_VERBOSE": "0", "RAPT_LOG_FORMAT": "text", "RAPT_COLOR": "never",
                  "RAPT_PROGRESS": "none"}
        self.assertEqual(self.dump(env=others), self.dump())


class Check(Configured):
    def test_says_ok_to_a_sound_file(self):
        result = rapt("config", "check", self.config)
        self.assertEqual((result.code, result.out, result.err), (0, f"{self.config}: ok\n", ""))

    def test_every_example_is_sound(self):
        examples = sorted((SOURCE / "examples").glob("*.yaml"))
        self.assertTrue(examples)
        result = rapt("config", "check", *examples)
        self.assertEqual((result.code, result.err), (0, ""))
        self.assertEqual(result.lines, [f"{path}: ok" for path in examples])

    def test_names_every_error_of_every_file(self):
        bad = self.file("bad.yaml", "dropuot: 0.1\ndropout: high\nepochs: [1, 2]\nlayers: 2\nlayers: 3\nnhead:\nout: x\n"
                                    "norm-first: maybe\n")
        result = rapt("config", "check", bad, self.config, self.file("worse.yaml", "a: *b\n"))
        self.assertEqual((result.code, result.out), (3, f"{self.config}: ok\n"))
        self.assertEqual([line.replace(f"rapt: {self.folder}/", "") for line in result.err.splitlines()], [
            "bad.yaml:1: unknown key dropuot; did you mean dropout?",
            'bad.yaml:2: dropout: expected a number in [0, 1), got "high"',
            "bad.yaml:3: epochs: expected a whole number from 1 to 1099511627776, got a list",
            "bad.yaml:5: layers: said twice, first in line 4",
            "bad.yaml:6: nhead: expected a whole number from 1 to 1048576, got nothing",
            "bad.yaml:7: out: concerns one call, so it is a flag alone: --out",
            'bad.yaml:8: norm-first: expected true or false, got "maybe"',
            "worse.yaml:1: this is no YAML: the referenced anchor is not defined"])

    def test_names_contradictions(self):
        bad = self.file("bad.yaml", "d-model: 16\nnhead: 3\nschedule: noam\nlearning-rate: 1\npairs: a\nsource: b\n")
        result = rapt("config", "check", bad)
        self.assertEqual(result.code, 3)
        for word in ("nhead 3 does not divide d_model 16", "--noam-factor", "--pairs stands for"):
            self.assertIn(word, result.err)
        self.assertEqual(rapt("config", "check", self.file("part.yaml", "valid-metric: bleu\npatience: 3\n")).code, 0)


class Train(Configured):
    def test_a_file_trains_and_the_folder_keeps_what_was_said(self):
        model = self.folder / "model"
        result = rapt("train", self.config, "--set", "dropout=0.2", "--out", model, cwd="/")
        self.assertEqual(result.code, 0, result)
        config = json.loads((model / "config.json").read_text())
        self.assertEqual((config["d_model"], config["dropout"]), (16, 0.2))
        kept = values((model / "train.yaml").read_text())
        self.assertEqual((kept["dropout"], kept["epochs"]), (("0.2", "--set"), ("2", f"{self.config}:8")))
        again = rapt("train", model / "train.yaml", "--out", self.folder / "again", cwd="/")
        self.assertEqual(again.code, 0, again)
        self.assertEqual((self.folder / "again/model.safetensors").read_bytes(), (model / "model.safetensors").read_bytes())

    def test_text_in_the_place_of_a_configuration_is_told_its_flags(self):
        text = self.file("words.txt", "just words\n")
        self.assert_fails(rapt("train", text, text, "--out", self.folder / "m"), 3, "words.txt:1", "--source and --target")

    def test_the_seed_may_stand_in_a_file(self):
        seeded = self.file("seed.yaml", "seed: 5\n")
        weights = []
        for how in ([self.config, seeded], [self.config, "--seed", "5"], [self.config]):
            self.assertEqual(rapt("train", *how, "--restart", "--out", self.folder / "m").code, 0)
            weights.append((self.folder / "m/model.safetensors").read_bytes())
        self.assertEqual(weights[0], weights[1])
        self.assertNotEqual(weights[0], weights[2])

    def test_contradictions_are_3_from_files_and_what_is_missing_2(self):
        out = ["--out", self.folder / "m"]
        self.assert_fails(rapt("train", self.config, "--set", "nhead=3", *out), 3, "nhead 3 does not divide d_model 16")
        self.assert_fails(rapt("train", self.config, self.file("v.yaml", "valid-metric: bleu\n"), *out), 3, "--valid-source")
        self.assert_fails(rapt("train", self.file("s.yaml", SMALL), *out), 2, "expected --source FILE and --target FILE")
        self.assert_fails(rapt("train", self.config), 2, "expected --out DIR")
        self.assertFalse((self.folder / "m").exists())

    def test_the_environment_is_a_setting(self):
        self.assertEqual(rapt("train", self.config, "--out", self.folder / "m", env={"RAPT_D_MODEL": "20"}).code, 0)
        self.assertEqual(json.loads((self.folder / "m/config.json").read_text())["d_model"], 20)

    def test_a_run_goes_on_with_its_file_or_without_and_names_what_differs(self):
        run = self.folder / "run"
        self.assertEqual(rapt("train", self.config, "--dropout", "0.2", "--out", run).code, 0)
        for how in ([], [self.config], [self.config, "--epochs", "4", "--out", run]):
            result = rapt("train", *how, "--resume", *([] if "--out" in how else [run]))
            self.assertEqual(result.code, 0, result)
            self.assertIn("going on from step", result.err)
        changed = self.file("changed.yaml", self.config.read_text().replace("d-model: 16", "d-model: 32"))
        self.assert_fails(rapt("train", changed, "--resume", run), 3, "--d-model", "16", "32")
        shorter = self.file("shorter.yaml", self.config.read_text().replace("d-model: 16\n", ""))
        self.assert_fails(rapt("train", shorter, "--resume", run), 3, "--d-model", "16", "256")
        self.assertIn("the run had ended", rapt("train", "--resume", run).err)  # with the 4 epochs, not the file's 2
        self.assertEqual(values((run / "train.yaml").read_text())["epochs"], ("4", "--epochs"))


class Pages(TestCase):
    def test_the_commands_of_the_page_run(self):
        page = (SOURCE / "docs/configuration.md").read_text()
        commands = "".join(re.findall(r"(?ms)^```sh\n(.*?)^```", page))
        script = commands.replace("/tmp/", f"{self.folder}/").replace("build/rapt ", f"{shlex.quote(PROGRAM)} ")
        done = subprocess.run(["bash", "-ec", script], cwd=SOURCE, capture_output=True, env=CLEAN)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stdout.count(b": ok\n"), 2)

    def test_every_key_of_the_page_is_one(self):
        page = (SOURCE / "docs/configuration.md").read_text()
        known = set(re.findall(r"(?m)^(?:# )?([a-z0-9-]+):", rapt("config", "dump").out))
        for block in re.findall(r"(?ms)^```yaml\n(.*?)^```", page):
            for key in re.findall(r"(?m)^([a-z0-9-]+):", block):
                self.assertIn(key, known)


if __name__ == "__main__":
    unittest.main()
