"""rapt convert, and translating in int8."""

import json
import unittest

from program import TestCase, rapt, snapshot

LINES = "a b c\nb\n\nc c a\n"


class Convert(TestCase):
    def setUp(self):
        super().setUp()
        self.trained = self.model()
        self.other = self.folder / "other"

    def translations(self, folder, *flags, code=0):
        result = rapt("translate", folder, "--scores", *flags, stdin=LINES)
        self.assertEqual(result.code, code, result)
        return result.bytes

    def test_a_folder_in_int8_translates_as_quantising_when_loading(self):
        before = snapshot(self.trained)
        result = rapt("convert", self.trained, self.other, "--int8")
        self.assertEqual((result.code, result.out), (0, ""), result)
        self.assertEqual(snapshot(self.trained), before)
        self.assertEqual(set(snapshot(self.other)), set(before))
        expected = self.translations(self.trained, "--dtype", "int8")
        self.assertEqual(self.translations(self.other), expected)
        self.assertEqual(self.translations(self.other, "--dtype", "int8", "--batch", "1"), expected)
        for isa in ("scalar", "avx2"):
            self.assertEqual(len(self.translations(self.other, "--isa", isa).splitlines()), 4)

    def test_a_run_is_not_replaced(self):
        self.model(out="run")
        before = snapshot(self.folder / "run")
        self.assert_fails(rapt("convert", self.trained, self.folder / "run", "--int8"), 2, "run", "another folder")
        self.assertEqual(snapshot(self.folder / "run"), before)
        for _ in range(2):  # a model alone is
            self.assertEqual(rapt("convert", self.trained, self.other, "--int8").code, 0)

    def test_bf16_is_of_the_weights_as_they_stand(self):
        texts = self.translations(self.trained, "--dtype", "bf16")
        self.assertEqual(len(texts.splitlines()), 4)
        self.assertEqual(self.translations(self.trained, "--dtype", "bf16", "--batch", "1", "--threads", "1"), texts)
        self.assertNotEqual(self.translations(self.trained), texts)  # the scores
        rapt("convert", self.trained, self.other, "--int8")
        self.assert_fails(rapt("translate", self.other, "--dtype", "bf16", stdin=LINES), 4, "int8", "converted from")

    def test_its_tensors_are_shown(self):
        rapt("convert", self.trained, self.other, "--int8")
        shown = json.loads(rapt("inspect", self.other, "--json").out)
        self.assertEqual(shown["config"], json.loads((self.trained / "config.json").read_text()))
        tensors = {t["name"]: t for t in shown["tensors"]}
        for name, tensor in tensors.items():
            if tensor["dtype"] == "I8":
                self.assertEqual(tensors[name + ".scale"], {"name": name + ".scale", "dtype": "F32",
                                                            "shape": tensor["shape"][:1]})
        self.assertEqual({t["dtype"] for t in tensors.values()}, {"I8", "F32"})

    def test_other_verbs_ask_for_the_weights_that_it_was_made_of(self):
        rapt("convert", self.trained, self.other, "--int8")
        result = rapt("translate", self.other, "--dtype", "f32", stdin="a\n")
        self.assert_fails(result, 4, "int8", "converted from")
        self.assert_fails(rapt("convert", self.other, self.folder / "third", "--int8"), 4, "int8")

    def test_another_layout(self):
        result = rapt("convert", self.trained, self.other, "--layout", "torch")
        self.assertEqual(result.code, 0, result)
        self.assertEqual(json.loads((self.other / "config.json").read_text())["layout"], "torch")
        self.assertEqual(self.translations(self.other), self.translations(self.trained))

    def test_what_cannot_be_is_refused(self):
        self.assert_fails(rapt("convert", self.trained, self.other), 2, "--int8")
        self.assert_fails(rapt("convert", self.trained, self.trained, "--int8"), 2, "another folder")
        self.assert_fails(rapt("convert", self.folder / "none", self.other, "--int8"), 4, "none")
        self.assert_fails(rapt("convert", self.trained, self.other, "--layout", "keras"), 2, "keras")
        self.assertFalse(self.other.exists())

    def test_a_checkpoint_in_int8_is_not_trained_on(self):
        rapt("convert", self.trained, self.other, "--int8")
        checkpoints = sorted((self.trained / "checkpoints").iterdir())
        self.assertTrue(checkpoints)
        for name in ("model.safetensors", "config.json"):
            (checkpoints[-1] / name).write_bytes((self.other / name).read_bytes())
        result = rapt("train", "--resume", self.trained)
        self.assertNotEqual(result.code, 0)
        self.assertEqual(result.bytes, b"")


if __name__ == "__main__":
    unittest.main()
