"""What the scripts of this folder share: files of tensors, and numbers that no version of PyTorch can change."""
import ctypes
import json
import os
import random

import torch

import safetensors_file

DTYPES = {"F64": torch.float64, "F32": torch.float32, "I64": torch.int64, "BOOL": torch.bool}
NAMES = {dtype: name for name, dtype in DTYPES.items()}


def write(path, tensors):
    """Writes {name: tensor} as safetensors."""
    def content(tensor):
        tensor = tensor.detach().contiguous()
        size = tensor.numel() * tensor.element_size()
        return NAMES[tensor.dtype], tensor.shape, ctypes.string_at(tensor.data_ptr(), size) if size else b""

    safetensors_file.write(path, {name: content(tensor) for name, tensor in tensors.items()})


def read(path):
    """Reads a safetensors file as {name: tensor}."""
    def tensor(dtype, shape, content):
        flat = torch.frombuffer(bytearray(content), dtype=DTYPES[dtype]) if content else torch.empty(0, dtype=DTYPES[dtype])
        return flat.reshape(shape)

    return {name: tensor(*entry) for name, entry in safetensors_file.read(path).items()}


def write_fixtures(fixtures, folder):
    """Writes {relative path: tensors of a .safetensors or content of a .json} below `folder`."""
    for path, content in fixtures.items():
        path = os.path.join(folder, path)
        if path.endswith(".safetensors"):
            write(path, content)
        else:
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "w") as file:
                file.write(json.dumps(content, indent=1) + "\n")
        print(f"{os.path.getsize(path):>12,} bytes  {path}")


class Numbers:
    """Random tensors from Python's own generator, which gives the same numbers everywhere. Floats are f64 that f32 can
    hold, so that a run in f32 starts from exactly the same values."""

    def __init__(self, seed):
        self.random = random.Random(seed)

    def uniform(self, *shape, low=-1.0, high=1.0):
        count = torch.Size(shape).numel()
        values = [low + (high - low) * self.random.random() for _ in range(count)]
        return torch.tensor(values, dtype=torch.float32).double().reshape(shape)

    def ids(self, *shape, low, high):
        """Whole numbers in [low, high)."""
        count = torch.Size(shape).numel()
        return torch.tensor([low + int((high - low) * self.random.random()) for _ in range(count)]).reshape(shape)


def draw_parameters(module, numbers):
    """Gives every parameter of `module` (f64) values of the usual size, none of them special: norms are not 1 and biases not 0."""
    for name, parameter in module.named_parameters():
        if "norm" in name.lower():
            low, high = (0.7, 1.3) if name.endswith("weight") else (-0.2, 0.2)
        elif "emb" in name:
            low, high = -1.7, 1.7
        else:
            high = parameter.shape[-1] ** -0.5 if parameter.dim() > 1 else 0.3
            low = -high
        parameter.data = numbers.uniform(*parameter.shape, low=low, high=high)


def gradients_of(module):
    """{"grad." + name: gradient} of every parameter."""
    return {"grad." + name: parameter.grad for name, parameter in module.named_parameters()}
