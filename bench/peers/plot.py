#!/usr/bin/env python3
"""Draws what compare.py kept as bars: bench/peers/plot.py RESULTS.jsonl... > docs/images/speed.svg

A bar a case and type: how many times as fast as the peer, with the range over the rounds.
"""

import html
import json
import sys

COLOURS = {"f32": "#4878a8", "bf16": "#d08030", "int8": "#6a9f58"}
ROW, GAP, LEFT, WIDTH, TOP = 18, 10, 190, 420, 46


def read(paths):
    lines = [json.loads(line) for path in paths for line in open(path)]
    cases = {}
    for line in lines:  # a later line of the same case and type wins
        cases.setdefault(line["case"], {})[line["dtype"]] = line
    return cases


def text(x, y, words, anchor="start", size=12, colour="#222"):
    return (
        f'<text x="{x:.0f}" y="{y:.0f}" text-anchor="{anchor}" font-size="{size}" '
        f'fill="{colour}">{html.escape(words)}</text>'
    )


def draw(cases):
    largest = max(line["range"][1] for types in cases.values() for line in types.values())
    scale = WIDTH / max(1.0, largest)
    rows = sum(len(types) for types in cases.values())
    height = TOP + rows * ROW + len(cases) * GAP + 14
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{LEFT + WIDTH + 60}" height="{height}" '
        'font-family="sans-serif">',
        '<rect width="100%" height="100%" fill="#fff"/>',
        text(10, 18, "Times as fast as the peer, in one run on the same cores", size=14),
    ]
    for i, (name, colour) in enumerate(COLOURS.items()):
        if any(name in types for types in cases.values()):
            out.append(f'<rect x="{LEFT + i * 70}" y="26" width="10" height="10" fill="{colour}"/>')
            out.append(text(LEFT + i * 70 + 15, 35, name))
    y = TOP
    for case, types in cases.items():
        out.append(text(LEFT - 10, y + ROW * len(types) / 2 + 4, case, "end"))
        for name, line in types.items():
            low, high = (LEFT + scale * end for end in line["range"])
            length = scale * line["faster"]
            middle = y + ROW / 2
            out += [
                f'<rect x="{LEFT}" y="{y + 2}" width="{length:.1f}" height="{ROW - 4}" '
                f'fill="{COLOURS[name]}"/>',
                f'<path d="M{low:.1f} {middle}H{high:.1f}" stroke="#222"/>',
                text(max(high, LEFT + length) + 6, middle + 4, f'{line["faster"]:.2f}'),
            ]
            y += ROW
        y += GAP
    peer = LEFT + scale
    out.append(f'<path d="M{peer:.1f} {TOP - 4}V{y - GAP + 4}" stroke="#222" stroke-dasharray="3 3"/>')
    out.append(text(peer, y + 6, "the peer", "middle", 10))
    return "\n".join(out + ["</svg>"])


def main():
    if not sys.argv[1:]:
        sys.exit(__doc__)
    print(draw(read(sys.argv[1:])))


if __name__ == "__main__":
    main()
