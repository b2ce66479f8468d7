"""`rapt forward` gives PyTorch's logits, attention weights and gradients, in f64 and in f32."""

import array
import os
import subprocess
import tempfile
import unittest

import safetensors_file

HERE = os.path.dirname(os.path.abspath(__file__))
MODELS = ("hand_built", "torch", "torch_norm_first")


def forward(folder, given, *flags):
    """Runs the program on {name: (dtype, shape, bytes)} and returns the same kind of thing."""
    with tempfile.TemporaryDirectory() as temporary:
        source, target = os.path.join(temporary, "in.safetensors"), os.path.join(temporary, "out.safetensors")
        safetensors_file.write(source, given)
        subprocess.run([os.environ["RAPT_PROGRAM"], "forward", folder, "--in", source, "--out", target, *flags], check=True)
        return safetensors_file.read(target)


def narrow(tensor):
    dtype, shape, _ = tensor
    if dtype != "F64":
        return tensor
    return "F32", shape, array.array("f", safetensors_file.values(tensor)).tobytes()


class Forward(unittest.TestCase):
    def compare(self, got, wanted, dtype, tolerance):
        self.assertEqual(sorted(got), sorted(wanted))
        size = {name: max(map(abs, safetensors_file.values(tensor))) for name, tensor in wanted.items()}
        # The gradient of a key's bias is zero but for rounding: it is measured by the others.
        floor = 1e-3 * max(size.values())
        for name, tensor in wanted.items():
            self.assertEqual(got[name][:2], (dtype, tensor[1]), name)
            pairs = zip(safetensors_file.values(got[name]), safetensors_file.values(tensor))
            difference = max(abs(x - y) for x, y in pairs)
            self.assertLessEqual(difference, tolerance * max(size[name], floor), name)

    def files(self, model):
        folder = os.path.join(HERE, "forward", model)
        return folder, *(safetensors_file.read(os.path.join(folder, name)) for name in ("in.safetensors", "out.safetensors"))

    def test_gives_pytorchs_numbers(self):
        for model in MODELS:
            with self.subTest(model):
                folder, given, wanted = self.files(model)
                flags = ("--grad", "--args", '{"attentions": true}')
                self.compare(forward(folder, given, *flags), wanted, "F64", 1e-10)
                narrowed = {name: narrow(tensor) for name, tensor in given.items()}
                self.compare(forward(folder, narrowed, *flags), wanted, "F32", 1e-5)

    def test_ids_alone_run_in_the_type_of_the_weights(self):
        for model in MODELS:
            with self.subTest(model):
                folder, given, wanted = self.files(model)
                ids = {name: given[name] for name in ("src", "tgt")}
                self.compare(forward(folder, ids), {"logits": wanted["logits"]}, "F64", 1e-10)


if __name__ == "__main__":
    unittest.main()
