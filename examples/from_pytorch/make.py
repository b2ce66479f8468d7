"""Writes encoder.safetensors and case.safetensors: python make.py [FOLDER], with PyTorch and safetensors from PyPI."""

import pathlib
import sys

# [python]
import torch
from safetensors.torch import save_file

torch.manual_seed(1)
layer = torch.nn.TransformerEncoderLayer(
    d_model=16, nhead=4, dim_feedforward=32, activation="gelu", batch_first=True, norm_first=True)
encoder = torch.nn.TransformerEncoder(layer, num_layers=2, norm=torch.nn.LayerNorm(16), enable_nested_tensor=False)
encoder.eval()

src = torch.randn(2, 5, 16, requires_grad=True)
padding = torch.tensor([[False] * 5, [False, False, False, True, True]])
output = encoder(src, src_key_padding_mask=padding)
output.sum().backward()
# [python]

folder = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else __file__).resolve()
folder = folder if folder.is_dir() else folder.parent
save_file(encoder.state_dict(), folder / "encoder.safetensors")
save_file({"src": src.detach(), "padding": padding, "output": output.detach(), "d_src": src.grad,
           "grad.layers.0.linear1.weight": encoder.layers[0].linear1.weight.grad}, folder / "case.safetensors")
