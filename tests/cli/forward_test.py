"""rapt forward: PyTorch's numbers through the program, and what it says of inputs that do not fit."""

import os
import shutil
import struct
import subprocess
import unittest

from program import CLEAN, GOLDEN, PROGRAM, TestCase, edit_config, rapt, safetensors_file

FIXTURES = ["hand_built", "torch", "torch_norm_first"]
ALL = ["--grad", "--args", '{"attentions": true}']


def ids(rows):
    flat = [x for row in rows for x in row]
    return "I64", [len(rows), len(rows[0]) if rows else 0], struct.pack(f"<{len(flat)}q", *flat)


def narrow(tensor):
    """F64 as F32; other types as they are."""
    if tensor[0] != "F64":
        return tensor
    values = safetensors_file.values(tensor)
    return "F32", tensor[1], struct.pack(f"<{len(values)}f", *values)


class Forward(TestCase):
    def setUp(self):
        super().setUp()
        self.out = self.folder / "out.safetensors"

    def fixture(self, name):
        folder = GOLDEN / "forward" / name
        return folder, safetensors_file.read(folder / "in.safetensors"), safetensors_file.read(folder / "out.safetensors")

    def write(self, tensors):
        path = self.folder / "in.safetensors"
        safetensors_file.write(path, tensors)
        return path

    def run_on(self, model, tensors, *flags):
        self.out.unlink(missing_ok=True)
        return rapt("forward", model, "--in", self.write(tensors), "--out", self.out, *flags)

    def outputs(self, model, tensors, *flags):
        result = self.run_on(model, tensors, *flags)
        self.assertEqual((result.code, result.out, result.err), (0, "", ""))
        return safetensors_file.read(self.out)

    def assert_same_numbers(self, ours, theirs, tolerance):
        self.assertEqual(set(ours), set(theirs))
        gradients = [t for name, t in theirs.items() if name.startswith("grad.")]
        largest = max((abs(x) for t in gradients for x in safetensors_file.values(t)), default=0)
        for name, tensor in theirs.items():
            with self.subTest(name):
                # The gradient of a key's bias is zero but for rounding.
                nothing = max(map(abs, safetensors_file.values(tensor)), default=0) < 1e-6 * largest
                self.assert_alike(ours[name], tensor, tolerance, largest if nothing else None)


class Numbers(Forward):
    def test_both_spellings_give_pytorchs_logits_attentions_and_gradients_in_f64(self):
        for name in FIXTURES:
            with self.subTest(name):
                folder, given, wanted = self.fixture(name)
                ours = self.outputs(folder, given, *ALL)
                self.assertEqual({t[0] for t in ours.values()}, {"F64"})
                self.assert_same_numbers(ours, wanted, 1e-9)

    def test_f32_inputs_run_in_f32(self):
        for name in FIXTURES:
            with self.subTest(name):
                folder, given, wanted = self.fixture(name)
                ours = self.outputs(folder, {k: narrow(t) for k, t in given.items()}, *ALL)
                self.assertEqual({t[0] for t in ours.values()}, {"F32"})
                self.assert_same_numbers(ours, wanted, 1e-4)

    def test_ids_alone_run_in_the_type_of_the_weights(self):
        folder, given, wanted = self.fixture("torch")
        only_ids = {k: given[k] for k in ("src", "tgt")}
        ours = self.outputs(folder, only_ids)
        self.assertEqual(list(ours), ["logits"])
        self.assert_alike(ours["logits"], wanted["logits"], 1e-9)
        model = self.folder / "narrow"
        shutil.copytree(folder, model)
        safetensors_file.write(model / "model.safetensors", {
            k: narrow(t) for k, t in safetensors_file.read(folder / "model.safetensors").items()})
        self.assertEqual(self.outputs(model, only_ids)["logits"][0], "F32")
        self.assertEqual(self.outputs(model, given, "--grad")["logits"][0], "F64")  # weights widened

    def test_ids_may_be_i32(self):
        folder, given, wanted = self.fixture("hand_built")
        for key in ("src", "tgt"):
            values = safetensors_file.values(given[key])
            given[key] = "I32", given[key][1], struct.pack(f"<{len(values)}i", *values)
        self.assert_same_numbers(self.outputs(folder, given, *ALL), wanted, 1e-9)

    def test_outputs_are_those_that_were_asked_for(self):
        folder, given, wanted = self.fixture("hand_built")
        self.assertEqual(set(self.outputs(folder, given, "--grad")), {k for k in wanted if "attentions" not in k})
        del given["d_output"]
        self.assertEqual(set(self.outputs(folder, given, "--args", '{"attentions": true}')),
                         {k for k in wanted if not k.startswith("grad.")})
        self.assertEqual(set(self.outputs(folder, given, "--args", '{"attentions": false}')), {"logits"})

    def test_every_instruction_set_agrees_in_f32(self):
        folder, given, _ = self.fixture("torch")
        given = {k: narrow(t) for k, t in given.items()}
        reference = self.outputs(folder, given, *ALL, "--isa", "scalar")
        tried = 0
        for isa in ("sse4", "avx2", "avx512", "avx512_bf16", "amx"):
            result = self.run_on(folder, given, *ALL, "--isa", isa)
            if result.code != 0:
                self.assert_fails(result, 2, isa)  # this CPU lacks it
                continue
            self.assert_same_numbers(safetensors_file.read(self.out), reference, 1e-5)
            tried += 1
        if tried == 0:
            self.skipTest("the CPU has one instruction set alone")

    def test_R43_threads_change_no_bit(self):
        folder, given, _ = self.fixture("hand_built")
        given = {k: narrow(t) for k, t in given.items()}
        results = []
        for threads in (1, 2, 3, 7):
            self.outputs(folder, given, *ALL, "--threads", threads)
            results.append(self.out.read_bytes())
        self.assertEqual(len(set(results)), 1)

    def test_dropout_acts_with_train_and_by_its_seed(self):
        folder, given, _ = self.fixture("torch")
        del given["d_output"]
        model = self.folder / "model"
        shutil.copytree(folder, model)
        edit_config(model, dropout=0.5)
        logits = [self.outputs(model, given, *flags)["logits"] for flags in ([], ["--train", "1"], ["--train", "1"],
                                                                             ["--train", "2"])]
        self.assertEqual(logits[1], logits[2])
        self.assertNotEqual(logits[1], logits[3])
        self.assertNotEqual(logits[0], logits[1])
        self.assertEqual(self.outputs(folder, given, "--train", "1"), self.outputs(folder, given))  # no dropout in it

    def test_a_file_in_the_place_of_out_is_replaced(self):
        folder, given, _ = self.fixture("torch")
        self.out.write_text("old")
        self.assertEqual(rapt("forward", folder, "--in", self.write(given), "--out", self.out, "--grad").code, 0)
        self.assertIn("logits", safetensors_file.read(self.out))

    def test_R3_empty_inputs_give_empty_outputs_of_the_right_shape(self):
        folder, _, _ = self.fixture("hand_built")
        for B, Ts, Tt in ((0, 3, 2), (2, 3, 0), (0, 0, 0)):
            with self.subTest((B, Ts, Tt)):
                given = {"src": ("I64", [B, Ts], struct.pack(f"<{B * Ts}q", *[1] * (B * Ts))),
                         "tgt": ("I64", [B, Tt], struct.pack(f"<{B * Tt}q", *[1] * (B * Tt))),
                         "d_output": ("F64", [B, Tt, 11], b"")}
                ours = self.outputs(folder, given, *ALL)
                self.assertEqual(ours["logits"][1], [B, Tt, 11])
                self.assertEqual(ours["cross_attentions.0"][1], [B, 3, Tt, Ts])
                for name, tensor in ours.items():
                    if name.startswith("grad."):
                        self.assertFalse(any(safetensors_file.values(tensor)), name)

    def test_R3_a_source_without_words_is_finite(self):
        folder, _, _ = self.fixture("hand_built")
        for source in ([[0, 0, 0]], None):
            given = {"src": ids(source) if source else ("I64", [1, 0], b""), "tgt": ids([[8, 1, 2]])}
            values = safetensors_file.values(self.outputs(folder, given)["logits"])
            self.assertTrue(all(abs(v) < 1e6 for v in values))


class Reports(Forward):
    """Faults that others met in attention, through whole models."""

    SOURCE, TARGET = [[1, 2, 3, 4], [5, 6, 7, 1]], [[8, 1, 2, 3], [8, 4, 5, 6]]

    def run_model(self, name, source, target, *flags, trained=None):
        """Of `trained` targets alone (all) d_output is not zero."""
        folder, given, _ = self.fixture(name)
        B, T, V = len(target), len(target[0]), given["d_output"][1][2]
        d = [float((b + t + v) % 3 - 1) if trained is None or b in trained else 0.0
             for b in range(B) for t in range(T) for v in range(V)]
        d_output = {"d_output": ("F64", [B, T, V], struct.pack(f"<{len(d)}d", *d))} if "--grad" in flags else {}
        return self.outputs(folder, {"src": ids(source), "tgt": ids(target), **d_output}, *flags)

    def test_R1_a_target_that_begins_with_padding_leaves_the_gradients_of_the_others(self):
        for name in FIXTURES:
            both = self.run_model(name, [self.SOURCE[0], [0, 0, 0, 0]], [self.TARGET[0], [0, 1, 2, 0]], *ALL, trained=[0])
            alone = self.run_model(name, self.SOURCE[:1], self.TARGET[:1], *ALL)
            for t in both.values():
                self.assertTrue(all(abs(x) < 1e6 for x in safetensors_file.values(t)))
            self.assert_same_numbers(*({k: t for k, t in x.items() if k.startswith("grad.")} for x in (both, alone)), 1e-12)
            H, T = both["decoder_attentions.0"][1][1:3]
            first = [safetensors_file.values(both["decoder_attentions.0"])[(H + h) * T * T:][:T] for h in range(H)]
            self.assertFalse(any(map(any, first)))  # the first query sees padding alone

    def test_R4_a_later_token_moves_no_earlier_one(self):
        changed = [[8, 1, 2, 7], self.TARGET[1]]
        for name in FIXTURES:
            a, b = (safetensors_file.values(self.run_model(name, self.SOURCE, target)["logits"]) for target in (self.TARGET, changed))
            V = len(a) // 8
            same = [a[V * row:V * row + V] == b[V * row:V * row + V] for row in range(8)]
            self.assertEqual(same, [True, True, True, False, True, True, True, True])

    def test_R5_asking_for_weights_keeps_the_decoder_causal(self):
        for name in FIXTURES:
            for padded in (False, True):
                target = [[*row[:3], 0] for row in self.TARGET] if padded else self.TARGET
                plain, asked = (self.run_model(name, self.SOURCE, target, *flags) for flags in (["--grad"], ALL))
                self.assertEqual(plain, {k: t for k, t in asked.items() if "attentions" not in k})
                weights = safetensors_file.values(asked["decoder_attentions.1"])
                for row in range(len(weights) // 4):
                    self.assertFalse(any(weights[4 * row + row % 4 + 1:4 * row + 4]))

    def test_R7_every_way_of_running_gives_the_same(self):
        for name in FIXTURES:
            reference = self.run_model(name, self.SOURCE, self.TARGET)["logits"]
            for flags in (["--train", "1"], ["--grad"], ALL, [*ALL, "--train", "1"], ALL[1:]):
                self.assert_alike(self.run_model(name, self.SOURCE, self.TARGET, *flags)["logits"], reference, 1e-12)
            alone = [safetensors_file.values(self.run_model(name, [s], [t])["logits"]) for s, t in zip(self.SOURCE, self.TARGET)]
            whole = safetensors_file.values(reference)
            self.assertTrue(all(abs(x - y) < 1e-12 for x, y in zip([*alone[0], *alone[1]], whole, strict=True)))


class BadInputs(Forward):
    """Each is 5 with one line, and nothing is written."""

    def assert_refused(self, tensors, *words, flags=(), code=5, model="hand_built"):
        result = self.run_on(GOLDEN / "forward" / model, tensors, *flags)
        self.assert_fails(result, code, *words)
        self.assertFalse(self.out.exists())

    def setUp(self):
        super().setUp()
        self.given = self.fixture("hand_built")[1]

    def but(self, **changes):
        return {k: t for k, t in {**self.given, **changes}.items() if t is not None}

    def test_missing_unknown_and_misplaced_tensors(self):
        self.assert_refused(self.but(src=None), "src", flags=["--grad"])
        self.assert_refused(self.but(tgt=None), "tgt", flags=["--grad"])
        self.assert_refused(self.but(d_output=None), "d_output", flags=["--grad"])
        self.assert_refused(self.given, "d_output")  # without --grad nobody reads it
        self.assert_refused(self.but(srk=self.given["src"]), "srk", flags=["--grad"])

    def test_shapes_that_do_not_fit(self):
        self.assert_refused(self.but(src=("I64", [21], self.given["src"][2])), "src (B, T)", flags=["--grad"])
        self.assert_refused(self.but(tgt=ids([[8, 1]]), d_output=None), "rows of tgt")
        self.assert_refused(self.but(d_output=("F64", [3, 5, 1], b"\0" * 120)), "d_output", flags=["--grad"])

    def test_types_that_do_not_fit(self):
        src = self.given["src"]
        self.assert_refused(self.but(src=("F64", src[1], src[2])), "src", flags=["--grad"])
        self.assert_refused(self.but(src=("BOOL", src[1], b"\1" * 21), d_output=None), "src", "BOOL")
        mixed = self.but(extra=narrow(self.given["d_output"]))
        self.assert_refused(mixed, "one type", flags=["--grad"])

    def test_ids_beyond_the_vocabulary(self):
        for bad in (-1, 10, 2**31, -2**63):
            self.assert_refused(self.but(src=ids([[1, bad]] * 3), d_output=None), "10" if bad == 10 else str(bad))

    def test_R24_more_tokens_than_positions(self):
        self.assertEqual(self.run_on(GOLDEN / "forward" / "hand_built",
                                     self.but(src=ids([[1] * 16] * 3), d_output=None)).code, 0)
        self.assert_refused(self.but(src=ids([[1] * 17] * 3), d_output=None), "16", "17")

    def test_arguments_that_are_no_arguments(self):
        for args, word in (("{", "--args"), ("[]", "--args"), ('{"attention": true}', "did you mean attentions?"),
                           ('{"attentions": 1}', "attentions"), ("[" * 100_000, "--args")):
            with self.subTest(args[:20]):
                self.assert_refused(self.given, word, flags=["--grad", "--args", args], code=2)

    def test_a_file_of_inputs_that_is_none(self):
        for content in (None, b"", b"nonsense", struct.pack("<Q", 2**63)):
            path = self.folder / "in.safetensors"
            path.unlink(missing_ok=True)
            if content is not None:
                path.write_bytes(content)
            self.assert_fails(rapt("forward", GOLDEN / "forward" / "torch", "--in", path, "--out", self.out), 5, "in.safetensors")

    def test_a_place_that_takes_no_output_is_1(self):
        for place, word in ((self.folder / "none" / "out", "none"), (self.folder, "folder")):
            result = rapt("forward", GOLDEN / "forward" / "torch", "--in", self.write(self.given), "--out", place, "--grad")
            self.assert_fails(result, 1, word)

    @unittest.skipUnless(os.geteuid() == 0, "mounting a small file system needs root")
    def test_a_full_disk_is_1_and_the_old_file_intact(self):
        disk = self.folder / "disk"
        disk.mkdir()
        if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=16k", "none", disk], capture_output=True).returncode:
            self.skipTest("a small file system cannot be mounted here")
        self.addCleanup(subprocess.run, ["umount", disk])
        out = disk / "out"
        out.write_text("old")
        result = rapt("forward", GOLDEN / "forward" / "torch", "--in", self.write(self.given), "--out", out, "--grad")
        self.assert_fails(result, 1, "No space left on device")
        self.assertEqual(out.read_text(), "old")
        self.assertEqual([p.name for p in disk.iterdir()], ["out"])


if __name__ == "__main__":
    unittest.main()
