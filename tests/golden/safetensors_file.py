"""Safetensors files with Python alone. https://github.com/huggingface/safetensors:

8 bytes with the header's length (little-endian), the header as JSON {name: {dtype, shape, data_offsets}}, padded with
spaces, then the bytes of the tensors one after the other.
"""
import array
import json
import os
import struct

CODES = {"F64": "d", "F32": "f", "I64": "q", "I32": "i", "BOOL": "B"}  # of the module array


def write(path, tensors):
    """Writes {name: (dtype, shape, bytes)} to `path`; its folder is made."""
    header, offset = {}, 0
    for name, (dtype, shape, content) in tensors.items():
        header[name] = {"dtype": dtype, "shape": list(shape), "data_offsets": [offset, offset + len(content)]}
        offset += len(content)
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for _, _, content in tensors.values():
            file.write(content)


def read(path):
    """Reads a file as {name: (dtype, shape, bytes)}."""
    with open(path, "rb") as file:
        content = file.read()
    start = 8 + struct.unpack("<Q", content[:8])[0]
    header = json.loads(content[8:start])
    header.pop("__metadata__", None)
    return {name: (entry["dtype"], entry["shape"], content[start + entry["data_offsets"][0]:start + entry["data_offsets"][1]])
            for name, entry in header.items()}


def values(tensor):
    """The elements of (dtype, shape, bytes), flat."""
    return array.array(CODES[tensor[0]], tensor[2])
