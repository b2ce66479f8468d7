"""Reads TensorBoard's event files, by a code of its own that checks every checksum."""

import struct


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def masked(data):
    crc = crc32c(data)
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def records(data):
    """The bytes of each record."""
    at = 0
    while at < len(data):
        length, head = struct.unpack_from("<QI", data, at)
        assert head == masked(data[at:at + 8]), f"the length at {at}"
        body = data[at + 12:at + 12 + length]
        (tail,) = struct.unpack_from("<I", data, at + 12 + length)
        assert tail == masked(body), f"the record at {at}"
        yield body
        at += 16 + length


def fields(message):
    """(field, value) of a protocol buffer; numbers as they stand."""
    at = 0

    def varint():
        nonlocal at
        number = shift = 0
        while True:
            byte = message[at]
            at += 1
            number |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return number

    while at < len(message):
        key = varint()
        wire = key & 7
        if wire == 0:
            value = varint()
        else:
            size = {1: 8, 5: 4}[wire] if wire != 2 else varint()
            assert at + size <= len(message)
            value = message[at:at + size]
            at += size
        yield key >> 3, value


def read(path):
    """The events of a file: [{"wall_time": s, "step": n, "version": v or None, "values": {tag: number}}]."""
    events = []
    for record in records(path.read_bytes()):
        event = {"wall_time": None, "step": 0, "version": None, "values": {}}
        for field, value in fields(record):
            if field == 1:
                (event["wall_time"],) = struct.unpack("<d", value)
            elif field == 2:
                event["step"] = value
            elif field == 3:
                event["version"] = value.decode()
            elif field == 5:
                for _, scalar in fields(value):
                    parts = dict(fields(scalar))
                    (event["values"][parts[1].decode()],) = struct.unpack("<f", parts[2])
        events.append(event)
    return events
