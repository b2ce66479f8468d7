"""rapt demo: the worked example, from two sentences to a translation and pictures."""

import json
import re
import unittest

from program import TestCase, rapt


class Demo(TestCase):
    def demo(self, *flags):
        return rapt("demo", "--out", self.folder / "demo", *flags)

    def assert_pictures(self):
        pictures = self.folder / "demo" / "attention"
        self.assertEqual(sorted(p.name for p in pictures.iterdir()),
                         sorted(f"{kind}_layer{layer}.png" for kind in ("encoder_self", "decoder_self", "cross")
                                for layer in range(6)))
        for picture in pictures.iterdir():
            self.assertTrue(picture.read_bytes().startswith(b"\x89PNG"))

    def test_prints_the_translation_alone_and_draws_all_attentions(self):
        result = self.demo()
        self.assertEqual((result.code, result.out), (0, "i have zero girl friend .\n"), result)
        epochs = re.findall(r"(?m)^epoch +(\d+)/20  loss ", result.err)
        self.assertEqual(epochs, [str(e) for e in range(1, 21)])
        margin = re.search(r"least margin .*: (\d+\.\d+)", result.err)
        self.assertGreaterEqual(float(margin[1]), 0.5)
        self.assert_pictures()
        again = rapt("translate", self.folder / "demo" / "model", stdin="我 有 零 个 女 朋 友\n")
        self.assertEqual(again.out, result.out)

    def test_the_official_spelling_is_written_as_such(self):
        result = self.demo("--official", "--epochs", "60")
        self.assertEqual((result.code, result.out), (0, "i have zero girl friend .\n"), result)
        self.assert_pictures()
        shown = json.loads(rapt("inspect", self.folder / "demo" / "model", "--json").out)
        self.assertEqual(shown["config"]["layout"], "torch")
        self.assertIn("transformer.encoder.layers.0.self_attn.in_proj_weight", [t["name"] for t in shown["tensors"]])

    def test_quiet_leaves_the_translation(self):
        result = self.demo("--quiet", "--epochs", "1")
        self.assertEqual((result.code, len(result.lines), result.err), (0, 1, ""))

    def test_the_default_folder_is_demo(self):
        self.assertEqual(rapt("demo", "--epochs", "1", "--quiet", cwd=self.folder).code, 0)
        self.assertTrue((self.folder / "demo" / "model" / "config.json").exists())

    def test_a_place_that_holds_something_else_is_left_alone(self):
        (self.folder / "demo").mkdir()
        (self.folder / "demo" / "model").write_text("mine")
        self.assert_fails(self.demo(), 2, "got a file")
        self.assertEqual((self.folder / "demo" / "model").read_text(), "mine")


if __name__ == "__main__":
    unittest.main()
