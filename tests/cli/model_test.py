"""Model folders as the program meets them: shown, missing, cut, contradictory, hostile."""

import json
import math
import os
import resource
import shutil
import struct
import subprocess
import unittest

import official
from program import CLEAN, PROGRAM, TestCase, edit_config, rapt, snapshot


def weights(header, data=b"\0" * 8):
    text = header if isinstance(header, bytes) else header.encode()
    return struct.pack("<Q", len(text)) + text + data


def entry(begin, end, shape="[1]", dtype='"F32"'):
    return f'{{"dtype":{dtype},"shape":{shape},"data_offsets":[{begin},{end}]}}'


class Inspect(TestCase):
    def test_shows_configuration_tensors_and_parameters(self):
        model = self.model()
        text = rapt("inspect", model)
        shown = json.loads(rapt("inspect", model, "--json").out)
        self.assertEqual((text.code, text.err), (0, ""))
        self.assertEqual(shown["config"], json.loads((model / "config.json").read_text()))
        for tensor in shown["tensors"]:
            self.assertRegex(text.out, rf"(?m)^{tensor['name']} +{tensor['dtype']} +\({', '.join(map(str, tensor['shape']))}\)$")
        self.assertIn(f"{shown['parameters']} parameters", text.out)
        self.assertEqual(shown["elements"] * 4, shown["bytes"])

    def test_a_tied_matrix_is_counted_once(self):
        shown = json.loads(rapt("inspect", self.model(), "--json").out)
        d, f, v = 16, 32, 7
        attention, feed_forward, norm = 4 * (d * d + d), 2 * d * f + f + d, 2 * d
        self.assertEqual(shown["parameters"], 2 * v * d + v + (attention + feed_forward + 2 * norm)
                         + (2 * attention + feed_forward + 3 * norm) + 2 * norm)

    def test_shows_a_file_alone(self):
        model = self.model()
        alone = json.loads(rapt("inspect", model / "model.safetensors", "--json").out)
        self.assertEqual(alone["tensors"], json.loads(rapt("inspect", model, "--json").out)["tensors"])
        self.assertNotIn("config", alone)

    def test_shows_every_official_module(self):
        for module in official.MODULES:
            with self.subTest(module):
                config, _ = official.base(module)
                tensors = official.parameters(config)
                folder = official.write_folder(self.folder / "module", config)
                shown = json.loads(rapt("inspect", folder, "--json").out)
                self.assertEqual(list(shown["config"].items()), list(config.items()))
                self.assertEqual({t["name"]: t["shape"] for t in shown["tensors"]}, tensors)
                self.assertEqual({t["dtype"] for t in shown["tensors"]}, {"F64"} if tensors else set())
                elements = sum(math.prod(shape) for shape in tensors.values())
                self.assertEqual((shown["elements"], shown["bytes"], shown["parameters"]), (elements, 8 * elements, elements))
                text = rapt("inspect", folder)
                self.assertEqual((text.code, text.err), (0, ""))
                for name, shape in tensors.items():
                    self.assertRegex(text.out, rf"(?m)^{name} +F64 +\({', '.join(map(str, shape))}\)$")
                self.assertIn(f'"model_type": "{module}"', text.out)
                self.assertIn(f"\n{len(tensors)} tensors, {elements} elements, ", text.out)
                self.assertIn(f"\n{elements} parameters", text.out)

    def test_counts_the_parameters_of_an_official_module_by_its_defaults(self):
        module = official.write_folder(self.folder / "module", {"model_type": "torch.nn.Transformer"}, {"x": official.tensor([1])})
        self.assertEqual(json.loads(rapt("inspect", module, "--json").out)["parameters"], 44140544)  # PyTorch's sum of numel()


class BadModel(TestCase):
    """Each is 4 with one line that names the file, for every verb that reads it."""

    def setUp(self):
        super().setUp()
        self.trained = self.model()
        self.weights = self.trained / "model.safetensors"
        self.config = self.trained / "config.json"

    def refused(self, *words, verbs=("translate", "inspect", "forward"), model=None):
        model = self.trained if model is None else model
        for verb in verbs:
            more = ["--in", self.good_input(), "--out", self.folder / "out.safetensors"] if verb == "forward" else []
            self.assert_fails(rapt(verb, model, *more, stdin="a\n"), 4, *words)
        self.assertFalse((self.folder / "out.safetensors").exists())

    def good_input(self):
        ids = struct.pack("<2q", 4, 5)
        header = f'{{"src":{entry(0, 16, "[1,2]", chr(34) + "I64" + chr(34))},"tgt":{entry(16, 32, "[1,2]", chr(34) + "I64" + chr(34))}}}'
        return self.file("in.safetensors", weights(header, ids + ids))

    def test_the_input_of_these_tests_is_good(self):
        self.assertEqual(rapt("forward", self.trained, "--in", self.good_input(), "--out", self.folder / "x").code, 0)

    def test_missing_or_a_file(self):
        self.refused("none", model=self.folder / "none")
        self.refused("a file", model=self.file("a file", "x"))
        self.weights.unlink()
        self.refused("model.safetensors")
        self.config.unlink()
        self.refused("config.json")

    def test_a_folder_with_a_model_in_it_is_told_so(self):
        (self.folder / "demo").mkdir()
        self.refused("no config.json in it", model=self.folder / "demo")
        shutil.copytree(self.trained, self.folder / "demo" / "model")
        self.refused(f"did you mean {self.folder / 'demo' / 'model'}?", model=self.folder / "demo",
                     verbs=("translate", "inspect", "forward"))

    def test_a_folder_in_a_files_place(self):
        self.weights.unlink()
        self.weights.mkdir()
        self.refused("model.safetensors")

    @unittest.skipIf(os.geteuid() == 0, "root may read anything")
    def test_unreadable(self):
        self.weights.chmod(0)
        self.refused("model.safetensors", "Permission denied")

    def test_R41_no_vocabulary_and_bad_ones(self):
        for side in ("source", "target"):
            path = self.trained / f"{side}_vocabulary.txt"
            words = path.read_text()
            for content, code, named in ((None, 4, "no vocabulary"), (words + "one\n", 4, "at most 7"), ("", 5, "empty"),
                                         (words.replace("<s>", "<pad>"), 5, "line 2"), (words[:-2] + "\n", 5, "empty"),
                                         (words.encode() + b"\xff\n", 5, ":8")):
                with self.subTest((side, content)):
                    path.unlink() if content is None else path.write_bytes(
                        content if isinstance(content, bytes) else content.encode())
                    self.assert_fails(rapt("translate", self.trained, stdin="a\n"), code, path.name, named)
                    path.write_text(words)

    def test_heads_that_do_not_divide(self):
        edit_config(self.trained, nhead=3, d_qk=None, d_v=None)
        self.refused("config.json", "nhead 3 does not divide d_model 16")

    def test_R9_no_heads_and_no_width(self):
        for key in ("nhead", "d_model", "d_qk"):
            with self.subTest(key):
                edit_config(self.trained, **{key: 0})
                self.refused("config.json", key)
                edit_config(self.trained, **{key: 2 if key == "nhead" else 16 if key == "d_model" else 8})

    def test_R52_numbers_of_the_configuration_are_typed_and_bounded(self):
        good = self.config.read_text()
        for key in ("num_encoder_layers", "nhead", "dim_feedforward", "src_vocab_size", "max_len", "pad_id"):
            for value in ("-1", "1e9", "2147483648", "1.5", '"12"', "1e400", "18446744073709551616", "true", "[]"):
                with self.subTest((key, value)):
                    config = json.loads(good)
                    config[key] = "HERE"
                    self.config.write_text(json.dumps(config).replace('"HERE"', value))
                    self.refused("config.json", verbs=("inspect",))
        self.config.write_text(good.replace('"src_vocab_size": 7', '"src_vocab_size": null'))
        self.refused("config.json", "src_vocab_size", verbs=("inspect",))

    def test_R63_hostile_configurations(self):
        for text in ("", "[]", "{", "nonsense", "[" * 100_000, '{"a":' * 100_000, '{"model_type": "rapt.EncoderDecoder"}',
                     '{"model_type": "bert"}', "\ufeff{}", '{"model_type": "rapt.EncoderDecoder", "model_type": "x"}'):
            with self.subTest(text[:30]):
                self.config.write_text(text)
                self.refused("config.json", verbs=("translate", "inspect"))

    def test_official_modules_that_cannot_be(self):
        good = {"model_type": "torch.nn.TransformerEncoderLayer", "d_model": 6, "nhead": 2, "dim_feedforward": 5}
        folder = official.write_folder(self.folder / "module", good)
        for changes, *words in (({"nhead": 0}, "nhead", "got 0"), ({"d_model": "6"}, "d_model", "got"),
                                ({"model_type": "torch.nn.LSTM"}, "model_type", "torch.nn.MultiheadAttention"),
                                ({"nhaed": 2}, "nhaed", "did you mean nhead?"), ({"d_model": 2**63}, "d_model")):
            with self.subTest(changes):
                (folder / "config.json").write_text(json.dumps({**good, **changes}))
                self.refused("config.json", *words, verbs=("inspect", "forward"), model=folder)
        (folder / "config.json").write_text(json.dumps(good))
        (folder / "model.safetensors").unlink()
        self.refused("model.safetensors", verbs=("inspect", "forward"), model=folder)

    def test_an_unknown_key_is_told_the_nearest(self):
        edit_config(self.trained, nheads=2)
        self.refused("nheads", "did you mean nhead?")

    def test_R50_weights_cut_anywhere(self):
        whole = self.weights.read_bytes()
        header = 8 + struct.unpack("<Q", whole[:8])[0]
        for cut in (0, 1, 7, 8, 9, header // 2, header - 1, header, header + 1, (header + len(whole)) // 2, len(whole) - 1):
            with self.subTest(cut):
                self.weights.write_bytes(whole[:cut])
                self.refused("model.safetensors", verbs=("translate", "inspect"))

    def test_R51_R53_R54_R55_R56_hostile_weights(self):
        for what, content in {
                "a header of 2^63 bytes": struct.pack("<Q", 2**63),
                "a header that wraps": struct.pack("<Q", 2**64 - 4) + b"{}" * 8,
                "nested": weights("[" * 100_000),
                "a name twice": weights(f'{{"w":{entry(0, 4)},"w":{entry(4, 8)}}}'),
                "overlap": weights(f'{{"v":{entry(0, 8, "[2]")},"w":{entry(0, 8, "[2]")}}}'),
                "a hole": weights(f'{{"v":{entry(0, 4)},"w":{entry(20, 24)}}}', b"\0" * 24),
                "bytes behind": weights(f'{{"v":{entry(0, 4)}}}'),
                "shape and bytes": weights(f'{{"w":{entry(0, 8, "[1024,1024]")}}}'),
                "a product that overflows": weights(f'{{"w":{entry(0, 8, "[4398046511105,4398046511105]")}}}'),
                "a sum that overflows": weights(f'{{"v":{entry(0, 9223372036854775744, "[2305843009213693936]")},'
                                                f'"w":{entry(9223372036854775744, 18446744073709551488, "[2305843009213693936]")}}}'),
                "a negative size": weights(f'{{"w":{entry(0, 8, "[-2]")}}}'),
                "offsets backwards": weights(f'{{"w":{entry(8, 0, "[2]")}}}'),
                "offsets that are texts": weights(f'{{"w":{entry(chr(34) + "0" + chr(34), 8, "[2]")}}}'),
                "a type that is none": weights(f'{{"w":{entry(0, 8, "[2]", chr(34) + "F33" + chr(34))}}}'),
                "another model's": weights(f'{{"w":{entry(0, 8, "[2]")}}}'),
        }.items():
            with self.subTest(what):
                self.weights.write_bytes(content)
                self.refused("model.safetensors", verbs=("translate", "inspect") if what != "another model's" else ("translate",))

    def test_R53_a_large_hostile_header_takes_no_memory_to_speak_of(self):
        size = 60_000_000
        with open(self.weights, "wb") as file:
            file.write(struct.pack("<Q", size) + b'{"a":' + b"[" * (size - 5))
        done = subprocess.run([PROGRAM, "inspect", self.weights], capture_output=True, env=CLEAN,
                              preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_DATA, (200 << 20, 200 << 20)))
        self.assertEqual(done.returncode, 4, done.stderr)

    def test_R51_a_configuration_cannot_claim_more_than_the_weights_hold(self):
        edit_config(self.trained, num_encoder_layers=1000, dim_feedforward=1 << 20)
        done = subprocess.run([PROGRAM, "translate", self.trained], capture_output=True, env=CLEAN, input=b"a\n",
                              preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_DATA, (400 << 20, 400 << 20)))
        self.assertEqual(done.returncode, 4, done.stderr)
        self.assertIn(b"parameters that config.json describes", done.stderr)

    def test_reading_changes_nothing(self):
        before = snapshot(self.trained)
        rapt("translate", self.trained, stdin="a\n")
        rapt("inspect", self.trained)
        self.assertEqual(snapshot(self.trained), before)


if __name__ == "__main__":
    unittest.main()
