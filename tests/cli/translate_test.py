"""rapt translate and inspect: one line out for each line in, whatever comes in."""

import json
import shutil
import subprocess

from program import RAPT, ProgramTest, run


class Translate(ProgramTest):
    def setUp(self):
        super().setUp()
        self.model = self.train("--max-len", "8")

    def change(self, key, value):
        path = self.model / "config.json"
        config = json.loads(path.read_text())
        config[key] = value
        if value is None:
            del config[key]
        path.write_text(json.dumps(config))

    def test_R36_empty_and_blank_lines_give_empty_ones(self):
        for text, lines in (("", 0), ("\n", 1), ("   \n", 1), ("a\n\nb\n", 3), ("a b", 1)):
            out = self.expect(0, "translate", self.model, stdin=text)
            self.assertEqual(out.count("\n"), lines, repr(text))
            self.assertEqual(len(out.splitlines()), lines)
            for given, got in zip(text.split("\n"), out.split("\n")):
                if not given.strip():
                    self.assertEqual(got, "")

    def test_batch_and_threads_change_no_translation(self):
        text = "".join(line + "\n" for line in ["a b c", "", "c c", "b", "a a a a a", "unknown words"] * 7)
        outs = {self.expect(0, "translate", self.model, "--batch", batch, "--threads", threads, "--scores", stdin=text)
                for batch in (1, 2, 7, 32, 1024) for threads in (1, 2)}
        self.assertEqual(len(outs), 1)

    def test_an_unknown_word_without_unk_is_named_and_the_rest_translated(self):
        self.expect(0, "translate", self.model, stdin="a nosuchword\n")
        self.change("unk_id", None)
        out = self.expect(5, "translate", self.model, stdin="a\nnosuchword b\nb\n", says=["stdin:2", "nosuchword"])
        self.assertEqual(out.count("\n"), 3)
        self.assertEqual(out.split("\n")[1], "")

    def test_R24_a_line_longer_than_the_model_is_named_and_the_rest_translated(self):
        limit = " ".join(["a"] * 8)
        out = self.expect(0, "translate", self.model, stdin=limit + "\n")
        out = self.expect(5, "translate", self.model, stdin=f"a\n{limit} a\nb\n", says=["stdin:2", "9 words", "8 positions"])
        self.assertEqual(out.count("\n"), 3)
        self.assertEqual(out.split("\n")[1], "")

    def test_a_line_of_a_megabyte_is_named(self):
        out = self.expect(5, "translate", self.model, stdin="a " * 500_000 + "\nb\n", says=["stdin:1"])
        self.assertEqual(out.count("\n"), 2)

    def test_R40_invalid_utf8_is_named_and_the_rest_translated(self):
        out = self.expect(5, "translate", self.model, stdin=b"a\n\xff b\nb\n", says=["stdin:2"])
        self.assertEqual(out.count("\n"), 3)

    def test_R42_a_closed_output_is_an_error_not_a_crash(self):
        process = subprocess.Popen([RAPT, "translate", str(self.model), "--batch", "1"], stdin=subprocess.PIPE,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        process.stdout.close()
        try:
            process.stdin.write(b"a b\n" * 1000)
            process.stdin.close()
        except BrokenPipeError:
            pass
        code = process.wait(60)
        process.stderr.close()
        self.assertEqual(code, 1)

    def test_R50_truncated_weights_are_refused(self):
        weights = self.model / "model.safetensors"
        whole = weights.read_bytes()
        for cut in (0, 7, 8, 100, len(whole) // 2, len(whole) - 1):
            weights.write_bytes(whole[:cut])
            self.expect(4, "translate", self.model, stdin="a\n", says=["model.safetensors"])

    def test_R53_R54_R55_R56_hostile_weights_are_refused(self):
        weights = self.model / "model.safetensors"
        entry = lambda begin, end, shape="[1]": f'{{"dtype":"F32","shape":{shape},"data_offsets":[{begin},{end}]}}'
        headers = {
            "claims more than there is": (2**63).to_bytes(8, "little"),
            "a name twice": f'{{"w":{entry(0, 4)},"w":{entry(4, 8)}}}',
            "overlap": f'{{"v":{entry(0, 4)},"w":{entry(0, 4)}}}',
            "a hole": f'{{"v":{entry(0, 4)},"w":{entry(20, 24)}}}',
            "shape and bytes": f'{{"w":{entry(0, 8, "[1024,1024]")}}}',
            "overflow": f'{{"w":{entry(0, 8, "[4398046511105,4398046511105]")}}}',
            "nested": "[" * 100_000,
        }
        for what, header in headers.items():
            with self.subTest(what):
                data = header if isinstance(header, bytes) else len(header).to_bytes(8, "little") + header.encode() + b"\0" * 8
                weights.write_bytes(data)
                self.expect(4, "translate", self.model, stdin="a\n", says=["model.safetensors"])
                self.expect(4, "inspect", self.model, says=["model.safetensors"])

    def test_a_bad_model_folder_is_4(self):
        self.expect(4, "translate", self.folder / "none", stdin="a\n", says=["none"])
        self.expect(4, "translate", self.file("a file", "x"), stdin="a\n", says=["a file"])
        self.change("nhead", 3)
        self.change("d_qk", None)
        self.expect(4, "translate", self.model, stdin="a\n", says=["nhead 3 does not divide d_model 16"])

    def test_a_missing_vocabulary_is_named(self):
        (self.model / "source_vocabulary.txt").unlink()
        self.expect(4, "translate", self.model, stdin="a\n", says=["source_vocabulary.txt"])

    def test_inspect_counts_parameters_and_lists_tensors(self):
        text = self.expect(0, "inspect", self.model)
        as_json = json.loads(self.expect(0, "inspect", self.model, "--json"))
        self.assertIn("projection.weight", text)
        self.assertIn(f"{as_json['parameters']} parameters", text)
        self.assertEqual(as_json["config"]["d_model"], 16)
        alone = json.loads(self.expect(0, "inspect", self.model / "model.safetensors", "--json"))
        self.assertEqual(alone["tensors"], as_json["tensors"])


class Demo(ProgramTest):
    def test_prints_the_translation_alone_and_draws_all_three_kinds(self):
        for spelling in ((), ("--official", "--epochs", "60")):
            out = self.expect(0, "demo", "--out", self.folder / "demo", *spelling)
            self.assertEqual(out, "i have zero girl friend .\n")
            pictures = sorted(p.name for p in (self.folder / "demo" / "attention").iterdir())
            self.assertEqual(len(pictures), 18)
            for kind in ("encoder_self", "decoder_self", "cross"):
                data = (self.folder / "demo" / "attention" / f"{kind}_layer5.png").read_bytes()
                self.assertTrue(data.startswith(b"\x89PNG"))
            again = self.expect(0, "translate", self.folder / "demo" / "model", stdin="我 有 零 个 女 朋 友\n")
            self.assertEqual(again, out)
            shutil.rmtree(self.folder / "demo")
