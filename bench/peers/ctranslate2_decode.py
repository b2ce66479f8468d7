"""`rapt bench translate` in CTranslate2; prints one JSON line.

    python ctranslate2_decode.py [float32|int8] [BEAM] [BATCH]

The base encoder-decoder with random weights; 96 sources of 8 to 40 tokens, 28 tokens decoded of each. The model is written by a
process of its own, so that peak memory is that of decoding.
"""

import json
import os
import random
import resource
import statistics
import subprocess
import sys
import tempfile
import time

VOCABULARY, CHANNELS, HIDDEN, LAYERS, HEADS = 32000, 512, 2048, 6, 8
SOURCES, NEW_TOKENS, RUNS = 96, 28, 3
WORDS = ["<unk>", "<s>", "</s>"] + [f"w{i}" for i in range(VOCABULARY - 3)]


def write_model(folder):
    import numpy as np
    from ctranslate2.specs import common_spec, transformer_spec

    rng = np.random.default_rng(0)

    def drawn(*shape):
        return rng.standard_normal(shape, dtype="float32") * np.float32(0.02)

    def fill_linear(linear, out, into):
        linear.weight, linear.bias = drawn(out, into), np.zeros(out, "float32")

    def fill_norm(norm):
        norm.gamma, norm.beta = np.ones(CHANNELS, "float32"), np.zeros(CHANNELS, "float32")

    def fill_attention(attention, outputs):
        fill_norm(attention.layer_norm)
        for linear, out in zip(attention.linear, outputs):
            fill_linear(linear, out, CHANNELS)

    def fill_feed_forward(ffn):
        fill_norm(ffn.layer_norm)
        fill_linear(ffn.linear_0, HIDDEN, CHANNELS)
        fill_linear(ffn.linear_1, CHANNELS, HIDDEN)

    def fill_input(side, table):
        table.weight, side.scale_embeddings = drawn(VOCABULARY, CHANNELS), True
        side.position_encodings.encodings = drawn(512, CHANNELS)

    spec = transformer_spec.TransformerSpec.from_config(
        LAYERS, HEADS, pre_norm=False, activation=common_spec.Activation.RELU
    )
    fill_input(spec.encoder, spec.encoder.embeddings[0])
    fill_input(spec.decoder, spec.decoder.embeddings)
    for layer in spec.encoder.layer:
        fill_attention(layer.self_attention, (3 * CHANNELS, CHANNELS))
        fill_feed_forward(layer.ffn)
    for layer in spec.decoder.layer:
        fill_attention(layer.self_attention, (3 * CHANNELS, CHANNELS))
        fill_attention(layer.attention, (CHANNELS, 2 * CHANNELS, CHANNELS))
        fill_feed_forward(layer.ffn)
    fill_linear(spec.decoder.projection, VOCABULARY, CHANNELS)
    spec.register_source_vocabulary(WORDS)
    spec.register_target_vocabulary(WORDS)
    spec.validate()
    spec.save(folder)


def measure(folder, dtype, beam, batch):
    import ctranslate2

    threads, rng = int(os.environ.get("THREADS", "2")), random.Random(1)
    translator = ctranslate2.Translator(
        folder, compute_type=dtype, inter_threads=1, intra_threads=threads
    )
    sources = [
        [WORDS[3 + rng.randrange(VOCABULARY - 3)] for _ in range(rng.randrange(8, 41))]
        for _ in range(SOURCES)
    ]
    times = []
    for _ in range(1 + RUNS):
        start = time.perf_counter()
        translator.translate_batch(
            sources,
            beam_size=beam,
            max_batch_size=batch,
            min_decoding_length=NEW_TOKENS,
            max_decoding_length=NEW_TOKENS,
        )
        times.append(time.perf_counter() - start)
    result = {
        "case": "translate",
        "dtype": dtype,
        "beam": beam,
        "batch": batch,
        "tokens_per_s": round(SOURCES * NEW_TOKENS / statistics.median(times[1:]), 1),
        "rss_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
    }
    print(json.dumps(result), flush=True)


def main():
    if "WRITE_MODEL_TO" in os.environ:
        return write_model(os.environ["WRITE_MODEL_TO"])
    dtype, beam, batch = (sys.argv[1:] + ["float32", "1", "32"][len(sys.argv) - 1 :])[:3]
    with tempfile.TemporaryDirectory() as folder:
        environment = dict(os.environ, WRITE_MODEL_TO=folder, LD_PRELOAD="")
        subprocess.run([sys.executable, __file__], env=environment, check=True)
        measure(folder, dtype, int(beam), int(batch))


if __name__ == "__main__":
    main()
