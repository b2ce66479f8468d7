"""The encoder-decoder in PyTorch, in two spellings: from single linear layers, and around torch.nn.Transformer.

Vaswani et al. 2017 with these choices: embeddings are not scaled, every linear layer has a bias, nothing is tied. Keys
that are padding (id 0) are hidden from every query: source padding in the encoder and in cross-attention, target padding
in the decoder, where later positions are hidden too.

Sizes: B sentences, Ts and Tt their source and target lengths, C d_model, H heads.
"""
import math
import warnings

import torch
from torch import nn

warnings.filterwarnings("ignore", message="enable_nested_tensor")  # an optimisation of inference alone


def sinusoids(positions, channels):
    """sin on the even channels and cos on the odd ones, in f64. positions: (T) -> (T, channels)"""
    even = torch.arange(0, channels, 2, dtype=torch.float64)
    angles = positions.double()[:, None] * torch.exp(even * (-math.log(10000.0) / channels))
    table = torch.empty(len(positions), channels, dtype=torch.float64)
    table[:, 0::2] = angles.sin()
    table[:, 1::2] = angles.cos()[:, : channels // 2]
    return table


class Positions(nn.Module):
    def __init__(self, channels, max_len):
        super().__init__()
        self.register_buffer("pe", sinusoids(torch.arange(max_len), channels))

    def forward(self, x):
        return x + self.pe[: x.size(1)]


def hidden_keys(ids, queries):
    """True where a key is padding. (B, Tk) -> (B, queries, Tk)"""
    return (ids == 0)[:, None, :].expand(-1, queries, -1)


def later_keys(length):
    """True above the diagonal. -> (length, length)"""
    return torch.ones(length, length, dtype=torch.bool).triu(1)


class HandBuiltAttention(nn.Module):
    def __init__(self, d_model, nhead, d_qk, d_v):
        super().__init__()
        self.nhead, self.d_qk, self.d_v = nhead, d_qk, d_v
        self.W_Q = nn.Linear(d_model, nhead * d_qk)
        self.W_K = nn.Linear(d_model, nhead * d_qk)
        self.W_V = nn.Linear(d_model, nhead * d_v)
        self.fc = nn.Linear(nhead * d_v, d_model)
        self.layerNorm = nn.LayerNorm(d_model)

    def forward(self, x, memory, hidden):
        heads = lambda y, width: y.unflatten(-1, (self.nhead, width)).transpose(1, 2)  # (B, H, T, width)
        q, k = heads(self.W_Q(x), self.d_qk), heads(self.W_K(memory), self.d_qk)
        v = heads(self.W_V(memory), self.d_v)
        scores = q @ k.transpose(-1, -2) / math.sqrt(self.d_qk)
        weights = scores.masked_fill(hidden[:, None], -math.inf).softmax(-1)  # (B, H, Tq, Tk)
        context = (weights @ v).transpose(1, 2).flatten(2)
        return self.layerNorm(self.fc(context) + x), weights


class HandBuiltFeedForward(nn.Module):
    def __init__(self, d_model, dim_feedforward):
        super().__init__()
        self.fc = nn.Sequential(nn.Linear(d_model, dim_feedforward), nn.ReLU(), nn.Linear(dim_feedforward, d_model))
        self.layerNorm = nn.LayerNorm(d_model)

    def forward(self, x):
        return self.layerNorm(self.fc(x) + x)


class HandBuiltEncoderLayer(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.enc_self_attn = HandBuiltAttention(config["d_model"], config["nhead"], config["d_qk"], config["d_v"])
        self.pos_ffn = HandBuiltFeedForward(config["d_model"], config["dim_feedforward"])

    def forward(self, x, hidden):
        x, weights = self.enc_self_attn(x, x, hidden)
        return self.pos_ffn(x), weights


class HandBuiltDecoderLayer(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.dec_self_attn = HandBuiltAttention(config["d_model"], config["nhead"], config["d_qk"], config["d_v"])
        self.dec_enc_attn = HandBuiltAttention(config["d_model"], config["nhead"], config["d_qk"], config["d_v"])
        self.pos_ffn = HandBuiltFeedForward(config["d_model"], config["dim_feedforward"])

    def forward(self, y, memory, hidden, hidden_memory):
        y, self_weights = self.dec_self_attn(y, y, hidden)
        y, cross_weights = self.dec_enc_attn(y, memory, hidden_memory)
        return self.pos_ffn(y), self_weights, cross_weights


class HandBuiltEncoder(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.src_emb = nn.Embedding(config["src_vocab_size"], config["d_model"])
        self.pos_emb = Positions(config["d_model"], config["max_len"])
        self.layers = nn.ModuleList(HandBuiltEncoderLayer(config) for _ in range(config["num_encoder_layers"]))

    def forward(self, src, weights):
        x = self.pos_emb(self.src_emb(src))
        for index, layer in enumerate(self.layers):
            x, weights[f"encoder_attentions.{index}"] = layer(x, hidden_keys(src, src.size(1)))
        return x


class HandBuiltDecoder(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.tgt_emb = nn.Embedding(config["tgt_vocab_size"], config["d_model"])
        self.pos_emb = Positions(config["d_model"], config["max_len"])
        self.layers = nn.ModuleList(HandBuiltDecoderLayer(config) for _ in range(config["num_decoder_layers"]))

    def forward(self, tgt, memory, src, weights):
        y, length = self.pos_emb(self.tgt_emb(tgt)), tgt.size(1)
        hidden = hidden_keys(tgt, length) | later_keys(length)
        for index, layer in enumerate(self.layers):
            y, own, cross = layer(y, memory, hidden, hidden_keys(src, length))
            weights[f"decoder_attentions.{index}"], weights[f"cross_attentions.{index}"] = own, cross
        return y


class HandBuilt(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.encoder, self.decoder = HandBuiltEncoder(config), HandBuiltDecoder(config)
        self.projection = nn.Linear(config["d_model"], config["tgt_vocab_size"])

    def forward(self, src, tgt):
        """src: (B, Ts), tgt: (B, Tt) -> logits (B, Tt, V), {name of a layer's weights: (B, H, Tq, Tk)}"""
        weights = {}
        y = self.decoder(tgt, self.encoder(src, weights), src, weights)
        return self.projection(y), weights


class Official(nn.Module):
    def __init__(self, config):
        super().__init__()
        channels = config["d_model"]
        self.src_emb = nn.Embedding(config["src_vocab_size"], channels)
        self.tgt_emb = nn.Embedding(config["tgt_vocab_size"], channels)
        self.pos_emb = Positions(channels, config["max_len"])
        self.transformer = nn.Transformer(
            channels, config["nhead"], config["num_encoder_layers"], config["num_decoder_layers"], config["dim_feedforward"],
            dropout=0.0, activation=config["activation"], batch_first=True, norm_first=config["norm_first"])
        self.projection = nn.Linear(channels, config["tgt_vocab_size"])

    def forward(self, src, tgt, want_weights=False):
        """src: (B, Ts), tgt: (B, Tt) -> logits (B, Tt, V), {name of a layer's weights: (B, H, Tq, Tk)} if wanted"""
        weights = {}
        if want_weights:
            for index, layer in enumerate(self.transformer.encoder.layers):
                keep_weights(layer.self_attn, weights, f"encoder_attentions.{index}")
            for index, layer in enumerate(self.transformer.decoder.layers):
                keep_weights(layer.self_attn, weights, f"decoder_attentions.{index}")
                keep_weights(layer.multihead_attn, weights, f"cross_attentions.{index}")
        hidden_src, hidden_tgt = src == 0, tgt == 0
        y = self.transformer(
            self.pos_emb(self.src_emb(src)), self.pos_emb(self.tgt_emb(tgt)), tgt_mask=later_keys(tgt.size(1)),
            src_key_padding_mask=hidden_src, tgt_key_padding_mask=hidden_tgt, memory_key_padding_mask=hidden_src)
        return self.projection(y), weights


def keep_weights(attention, weights, name):
    """Lets an nn.MultiheadAttention that its layer calls without weights leave those of all heads in weights[name]."""
    forward = nn.MultiheadAttention.forward

    def watched(*args, **options):
        out, weights[name] = forward(attention, *args, **{**options, "need_weights": True, "average_attn_weights": False})
        return out, None

    attention.forward = watched


def build(config):
    """The model of a config.json, its parameters in f32 as PyTorch initialises them, its table of positions in f64."""
    return {"hand_built": HandBuilt, "torch": Official}[config["layout"]](config)


def config_of(layout, **sizes):
    """A config.json. Dropout is 0: these numbers are to be compared."""
    config = {
        "model_type": "rapt.EncoderDecoder", "layout": layout, "src_vocab_size": 10, "tgt_vocab_size": 11,
        "d_model": 512, "nhead": 8, "d_qk": 64, "d_v": 64, "dim_feedforward": 2048,
        "num_encoder_layers": 6, "num_decoder_layers": 6, "activation": "relu", "norm_first": False,
        "final_norm": layout == "torch", "position_dropout": 0.0, "dropout": 0.0, "max_len": 5000,
        "scale_embeddings": False, "projection_bias": True, "tie_embeddings": "none", "pad_id": 0, "start_id": 8, "end_id": 9}
    config.update(sizes)
    return config
