"""An inflater that says for each byte of its output where its literal's code stands.

In: a gzip file. Out: (byte, first, last, index) for each byte of the output. `first` and `last` are
the compressed bytes with the bits of its literal. `index` is where that literal first stood.
"""

from __future__ import annotations

LENGTHS = [3, 4, 5, 6, 7, 8, 9, 10, 11, 13, 15, 17, 19, 23, 27, 31, 35, 43, 51, 59, 67, 83, 99, 115,
           131, 163, 195, 227, 258]  # fmt: skip
LENGTH_BITS = [0] * 8 + [n for n in range(1, 6) for _ in range(4)] + [0]
DISTANCES = [1, 2, 3, 4, 5, 7, 9, 13, 17, 25, 33, 49, 65, 97, 129, 193, 257, 385, 513, 769, 1025,
             1537, 2049, 3073, 4097, 6145, 8193, 12289, 16385, 24577]  # fmt: skip
DISTANCE_BITS = [0, 0] + [n for n in range(14) for _ in range(2)]
ORDER = [16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15]

Code = dict[tuple[int, int], int]
Literal = tuple[int, int, int, int]


class Bits:
    """Bits of a byte string, the lowest of each byte first."""

    def __init__(self, content: bytes, at: int) -> None:
        self.content = content
        self.at = at * 8

    def bit(self) -> int:
        value = self.content[self.at >> 3] >> (self.at & 7) & 1
        self.at += 1
        return value

    def number(self, count: int) -> int:
        return sum(self.bit() << i for i in range(count))

    def symbol(self, code: Code) -> int:
        value = length = 0
        while (length, value) not in code:
            value = value << 1 | self.bit()
            length += 1
        return code[length, value]


def code_of(lengths: list[int]) -> Code:
    """The canonical code with these lengths."""
    code: Code = {}
    value = 0
    for length in range(1, 16):
        for symbol, own in enumerate(lengths):
            if own == length:
                code[length, value] = symbol
                value += 1
        value <<= 1
    return code


def dynamic_codes(bits: Bits) -> tuple[Code, Code]:
    literals, distances, count = bits.number(5) + 257, bits.number(5) + 1, bits.number(4) + 4
    lengths = [0] * 19
    for i in range(count):
        lengths[ORDER[i]] = bits.number(3)
    code, found = code_of(lengths), list[int]()
    while len(found) < literals + distances:
        symbol = bits.symbol(code)
        if symbol < 16:
            found.append(symbol)
        elif symbol == 16:
            found += found[-1:] * (3 + bits.number(2))
        else:
            found += [0] * (3 + bits.number(3) if symbol == 17 else 11 + bits.number(7))
    return code_of(found[:literals]), code_of(found[literals:])


def inflated(packed: bytes) -> list[Literal]:
    """The output of a gzip file without optional header fields."""
    bits, out, last = Bits(packed, 10), list[Literal](), False
    while not last:
        last = bool(bits.bit())
        kind = bits.number(2)
        if kind == 0:
            at = (bits.at + 7) // 8 + 4
            size = int.from_bytes(packed[at - 4 : at - 2], "little")
            out += [(packed[i], i, i, len(out) + i - at) for i in range(at, at + size)]
            bits.at = (at + size) * 8
            continue
        fixed = [8] * 144 + [9] * 112 + [7] * 24 + [8] * 8
        literal, distance = dynamic_codes(bits) if kind == 2 else (code_of(fixed), code_of([5] * 30))
        while True:
            start = bits.at
            symbol = bits.symbol(literal)
            if symbol < 256:
                out.append((symbol, start >> 3, (bits.at - 1) >> 3, len(out)))
            elif symbol == 256:
                break
            else:
                length = LENGTHS[symbol - 257] + bits.number(LENGTH_BITS[symbol - 257])
                back = bits.symbol(distance)
                back = DISTANCES[back] + bits.number(DISTANCE_BITS[back])
                for _ in range(length):
                    out.append(out[-back])
    return out
