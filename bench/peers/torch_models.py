"""The training cases of `rapt bench` as PyTorch modules, with the names that `--init` reads."""

import dataclasses
import math

import torch
from torch import nn
from torch.nn import functional as F


@dataclasses.dataclass
class Case:
    model: nn.Module
    batch: dict  # what is dumped for the other side
    losses: list  # functions whose gradients together are those of a step
    items: int  # real tokens or images of a step
    unit: str = "tokens"
    sgd: bool = False


# --- encoder-decoders ---------------------------------------------------------------------------


class SinusoidalPositions(nn.Module):
    def __init__(self, channels, longest=5000):
        super().__init__()
        rates = torch.exp(torch.arange(0, channels, 2) * (-math.log(10000.0) / channels))
        angles = torch.arange(longest)[:, None] * rates
        self.register_buffer("pe", torch.stack([angles.sin(), angles.cos()], -1).flatten(1))


class EncoderDecoder(nn.Module):
    """nn.Transformer, norms after the sublayers and at both ends. `tied`: one matrix for both
    embeddings, scaled, and for a projection without bias."""

    def __init__(self, vocabularies, channels, heads, hidden, layers, dropout, tied):
        super().__init__()
        source, target = vocabularies
        self.src_emb = nn.Embedding(source, channels)
        self.tgt_emb = self.src_emb if tied else nn.Embedding(target, channels)
        self.pos_emb = SinusoidalPositions(channels)
        self.transformer = nn.Transformer(
            channels, heads, layers, layers, hidden, dropout, batch_first=True
        )
        self.projection = nn.Linear(channels, target, bias=not tied)
        if tied:
            self.projection.weight = self.src_emb.weight
        self.dropout = nn.Dropout(dropout)
        self.scale = math.sqrt(channels) if tied else 1.0

    def embedded(self, table, ids):
        return self.dropout(table(ids) * self.scale + self.pos_emb.pe[: ids.size(1)])

    def forward(self, source, target):
        length, padding = target.size(1), source == 0
        masks = {"tgt_mask": torch.ones(length, length, dtype=torch.bool).triu(1)}
        if padding.any():
            masks.update(src_key_padding_mask=padding, memory_key_padding_mask=padding)
        x, y = self.embedded(self.src_emb, source), self.embedded(self.tgt_emb, target)
        return self.projection(self.transformer(x, y, tgt_is_causal=True, **masks))


def worked_example(dropout):
    source = torch.tensor([[1, 2, 3, 4, 5, 6, 7, 0], [1, 2, 8, 4, 9, 6, 7, 0]])
    target = torch.tensor([[8, 1, 2, 3, 4, 5, 10, 9], [8, 1, 2, 6, 7, 5, 10, 9]])
    model = EncoderDecoder((10, 11), 512, 8, 2048, 6, dropout, tied=False)
    return translator(model, source, target, smoothing=0.0, sgd=True)


def random_translator(vocabulary, channels, heads, hidden, layers, sentences, length, dropout):
    model = EncoderDecoder(
        (vocabulary, vocabulary), channels, heads, hidden, layers, dropout, tied=True
    )
    source = torch.randint(1, vocabulary, (sentences, length))
    target = torch.randint(1, vocabulary, (sentences, length + 1))
    return translator(model, source, target, smoothing=0.1)


def translator(model, source, target, smoothing, sgd=False):
    def loss():
        logits = model(source, target[:, :-1]).flatten(0, 1).float()
        wanted = target[:, 1:].flatten()
        return F.cross_entropy(logits, wanted, ignore_index=0, label_smoothing=smoothing)

    batch = {"source": source, "target": target}
    return Case(model, batch, [loss], target[:, 1:].numel(), sgd=sgd)


# --- stacks: GPT, BERT, ViT ---------------------------------------------------------------------


class Block(nn.Module):
    """Norms before the sublayers; query, key and value in one product."""

    def __init__(self, channels, heads, causal, dropout):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(channels), nn.LayerNorm(channels)
        self.qkv = nn.Linear(channels, 3 * channels)
        self.out = nn.Linear(channels, channels)
        self.ff1 = nn.Linear(channels, 4 * channels)
        self.ff2 = nn.Linear(4 * channels, channels)
        self.dropout = nn.Dropout(dropout)
        self.heads, self.causal = heads, causal

    def attended(self, x, keep):
        sentences, length, channels = x.shape
        parts = self.qkv(x).view(sentences, length, 3, self.heads, channels // self.heads)
        query, key, value = parts.permute(2, 0, 3, 1, 4)
        context = F.scaled_dot_product_attention(
            query, key, value, attn_mask=keep, is_causal=self.causal
        )
        return self.out(context.transpose(1, 2).reshape(x.shape))

    def forward(self, x, keep=None):
        x = x + self.dropout(self.attended(self.norm1(x), keep))
        hidden = F.gelu(self.ff1(self.norm2(x)), approximate="tanh" if self.causal else "none")
        return x + self.dropout(self.ff2(hidden))


class Stack(nn.Module):
    """`classes`: of images, in patches of 16 x 16; otherwise of a text, with a tied head."""

    def __init__(self, vocabulary, longest, causal=False, dropout=0.0, classes=0):
        super().__init__()
        channels, heads, layers = 768, 12, 12
        self.images = classes > 0
        self.embedding = (
            nn.Conv2d(3, channels, 16, 16) if self.images else nn.Embedding(vocabulary, channels)
        )
        self.position = nn.Embedding(longest, channels)
        self.blocks = nn.ModuleList(Block(channels, heads, causal, dropout) for _ in range(layers))
        self.norm = nn.LayerNorm(channels)
        self.head = nn.Linear(channels, classes or vocabulary, bias=False)
        if not self.images:
            self.head.weight = self.embedding.weight

    def forward(self, x, where=None, keep=None):
        x = self.embedding(x)
        if self.images:
            x = x.flatten(2).transpose(1, 2)
        x = x + self.position.weight[: x.size(1)]
        for block in self.blocks:
            x = block(x, keep)
        x = self.norm(x)
        if self.images:
            return self.head(x.mean(1))
        return self.head(x if where is None else x.flatten(0, 1)[where])


def language_model(length):
    model, ids = Stack(50257, 1024, causal=True), torch.randint(1, 50257, (4, length + 1))

    def loss():
        return F.cross_entropy(model(ids[:, :-1]).flatten(0, 1).float(), ids[:, 1:].flatten())

    return Case(model, {"ids": ids}, [loss], 4 * length)


def masked_language_model(lengths, micro_batches, dropout):
    """32 sequences of up to 128 tokens; 15 % of the real ones are predicted. With several
    micro-batches the sequences of one are of like length."""
    vocabulary, sentences, longest = 30522, 32, 128
    model = Stack(vocabulary, 512, dropout=dropout)
    lengths = torch.tensor(lengths)
    real = torch.arange(longest) < lengths[:, None]
    ids = torch.randint(1, vocabulary, (sentences, longest)) * real
    tokens = int(real.sum())
    places = real.flatten().nonzero().flatten()
    masked = places[torch.randperm(tokens)[: tokens * 15 // 100]].sort().values
    labels = torch.randint(1, vocabulary, (len(masked),))

    def loss_of(rows):
        width = int(lengths[rows].max())
        mine = torch.isin(masked // longest, rows)
        row_of = torch.full((sentences,), -1)
        row_of[rows] = torch.arange(len(rows))
        where = row_of[masked[mine] // longest] * width + masked[mine] % longest
        keep = real[rows, :width][:, None, None, :]
        keep = None if keep.all() else keep
        inputs, wanted = ids[rows, :width].contiguous(), labels[mine]

        def loss():
            logits = model(inputs, where, keep).float()
            return F.cross_entropy(logits, wanted, reduction="sum") / len(masked)

        return loss

    groups = lengths.argsort().chunk(micro_batches) if micro_batches > 1 else [torch.arange(32)]
    batch = {"ids": ids, "lengths": lengths, "masked": masked, "labels": labels}
    return Case(model, batch, [loss_of(rows) for rows in groups], tokens)


def image_classifier():
    model = Stack(0, 256, classes=1000)
    pixels, labels = torch.randn(16, 3, 224, 224), torch.randint(1, 1000, (16,))

    def loss():
        return F.cross_entropy(model(pixels).float(), labels)

    return Case(model, {"pixels": pixels, "labels": labels}, [loss], 16, unit="images")


NATURAL_LENGTHS = [16 + 37 * i % 113 for i in range(32)]

CASES = {
    "toy": lambda p: worked_example(p),
    "small": lambda p: random_translator(8000, 256, 4, 1024, 3, 128, 24, p),
    "base": lambda p: random_translator(32000, 512, 8, 2048, 6, 128, 32, p),
    "gpt64": lambda p: language_model(64),
    "gpt512": lambda p: language_model(512),
    "gpt1024": lambda p: language_model(1024),
    "bert": lambda p: masked_language_model([128] * 32, 1, p),
    "bertpad": lambda p: masked_language_model(NATURAL_LENGTHS, 1, p),
    "bertbucket": lambda p: masked_language_model(NATURAL_LENGTHS, 4, p),
    "vit": lambda p: image_classifier(),
}
TABLES = {"embedding.weight", "position.weight", "head.weight", "src_emb.weight"}


def make_case(name, dropout):
    torch.manual_seed(0)
    case = CASES[name](dropout)
    # Tied tables of unit variance would fill the gradients with denormals.
    for parameter, value in case.model.named_parameters():
        if name != "toy" and parameter in TABLES:
            nn.init.normal_(value, std=0.02)
    return case
