"""What a Perfetto trace of `fencepost timeline` holds, as the tests read it."""


def fields(message: bytes):
    """The fields of a protocol buffer: number and value."""
    at = 0

    def varint():
        nonlocal at
        value = shift = 0
        while True:
            byte = message[at]
            at += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value

    while at < len(message):
        key = varint()
        if key & 7 == 0:
            yield key >> 3, varint()
        elif key & 7 == 1:
            yield key >> 3, int.from_bytes(message[at : at + 8], "little")
            at += 8
        else:
            assert key & 7 == 2
            length = varint()
            yield key >> 3, message[at : at + length]
            at += length
    assert at == len(message)


def slices_of(file: bytes):
    """(track, begin, end) in nanoseconds of every slice, in the order of their begins."""
    tracks, open_slices, slices = {}, {}, []
    for number, packet in fields(file):
        assert number == 1
        parts = dict(fields(packet))
        if 60 in parts:
            descriptor = dict(fields(parts[60]))
            parent = tracks.get(descriptor.get(5))
            name = descriptor[2].decode()
            tracks[descriptor[1]] = f"{parent}/{name}" if parent else name
        if 11 in parts:
            event = dict(fields(parts[11]))
            if event[9] == 1:
                assert event[11] not in open_slices
                open_slices[event[11]] = parts[8]
            elif event[9] == 2:
                slices.append((tracks[event[11]], open_slices.pop(event[11]), parts[8]))
    assert not open_slices
    return sorted(slices, key=lambda slice: slice[1])
