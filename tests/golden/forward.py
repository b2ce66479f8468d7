"""One forward and backward pass of the encoder-decoder in f64, and tables of sinusoids.

    python3 forward.py    stored beside this script

forward/MODEL/ holds config.json, model.safetensors (F64) and
  in.safetensors    src (B, Ts), tgt (B, Tt) I64, with padding at the end and in the middle; d_output (B, Tt, V)
  out.safetensors   logits (B, Tt, V), encoder_attentions.L, decoder_attentions.L, cross_attentions.L (B, H, Tq, Tk),
                    grad.NAME of sum(logits * d_output) for every parameter
positions/sinusoids.safetensors holds positions (P) I64 and a table width.C (P, C) for each width C.
"""
import os

import torch

import models
import tensors

HERE = os.path.dirname(os.path.abspath(__file__))


def configs():
    sizes = dict(d_model=8, dim_feedforward=11, num_encoder_layers=2, num_decoder_layers=2, max_len=16)
    return {"hand_built": models.config_of("hand_built", **sizes, nhead=3, d_qk=5, d_v=2),
            "torch": models.config_of("torch", **sizes, nhead=2, d_qk=4, d_v=4),
            "torch_norm_first": models.config_of("torch", **sizes, nhead=4, d_qk=2, d_v=2, norm_first=True, activation="gelu")}


def forward(config, seed):
    """The contents of in.safetensors, out.safetensors and model.safetensors of one model."""
    numbers = tensors.Numbers(seed)
    model = models.build(config).double()
    tensors.draw_parameters(model, numbers)
    src = torch.tensor([[1, 5, 2, 9, 3, 4, 8], [7, 6, 0, 2, 0, 0, 0], [9, 1, 1, 3, 5, 0, 0]])
    tgt = torch.tensor([[8, 1, 6, 0, 2], [8, 10, 3, 4, 7], [8, 5, 0, 0, 0]])
    d_output = numbers.uniform(*tgt.shape, config["tgt_vocab_size"])
    options = {"want_weights": True} if config["layout"] == "torch" else {}
    logits, weights = model(src, tgt, **options)
    (logits * d_output).sum().backward()
    return ({"src": src, "tgt": tgt, "d_output": d_output},
            {"logits": logits, **dict(sorted(weights.items())), **tensors.gradients_of(model)}, model.state_dict())


def fixtures():
    contents = {}
    for seed, (name, config) in enumerate(configs().items(), start=1):
        given, wanted, state = forward(config, seed)
        contents.update({f"forward/{name}/config.json": config, f"forward/{name}/model.safetensors": state,
                         f"forward/{name}/in.safetensors": given, f"forward/{name}/out.safetensors": wanted})
    positions = torch.tensor([0, 1, 2, 3, 7, 8, 31, 255, 1000, 4999, 9999])
    tables = {f"width.{channels}": models.sinusoids(positions, channels) for channels in (1, 2, 5, 29, 64, 127)}
    contents["positions/sinusoids.safetensors"] = {"positions": positions, **tables}
    return contents


if __name__ == "__main__":
    torch.set_num_threads(1)
    tensors.write_fixtures(fixtures(), HERE)
