"""Small files that no format's own tool makes."""

import bz2
import hashlib
import lzma
import struct
import zlib
from pathlib import Path


def hostile():
    """Small files that ask for much memory, lead in circles, or end too early."""
    directory = Path("hostile")
    directory.mkdir()

    def write(name, content):
        (directory / name).write_bytes(content)

    # xz: a dictionary of 4 GiB. The head of a block is length, flags, filter, size, dictionary.
    packed = bytearray(lzma.compress(b"x" * 2000, format=lzma.FORMAT_XZ))
    length = (packed[12] + 1) * 4
    packed[12 + 4] = 40
    packed[12 + length - 4 : 12 + length] = zlib.crc32(packed[12 : 12 + length - 4]).to_bytes(4, "little")
    write("dictionary.tar.xz", bytes(packed))
    # zstd: a window of 2 GiB.
    write("window.tar.zst", bytes.fromhex("28b52ffd0048a8") + b"\x01\x00\x00")
    write("zeros.tar.bz2", bz2.compress(bytes(50_000_000)))
    kids = b"%PDF-1.4\n1 0 obj<</Type/Catalog/Pages 2 0 R>>endobj\n2 0 obj<</Type/Pages/Count 1/Kids[2 0 R 2 0 R]>>endobj\n"
    write("circle.pdf", kids + b"trailer<</Root 1 0 R/Info 3 0 R>>\nstartxref\n0\n%%EOF\n")
    deep = (
        b"%PDF-1.4\n1 0 obj "
        + b"[" * 200_000
        + b"]" * 200_000
        + b" endobj\ntrailer<</Root 1 0 R>>\nstartxref\n0\n%%EOF\n"
    )
    write("deep.pdf", deep)
    follow = b"%PDF-1.4\n1 0 obj 2 0 R endobj\n2 0 obj 1 0 R endobj\ntrailer<</Root 1 0 R/Info 2 0 R>>\nstartxref\n0\n%%EOF\n"
    write("follow.pdf", follow)
    # NetCDF: two thousand million dimensions; a variable of 2^62 bytes.
    write("dimensions.nc", b"CDF\x01" + struct.pack(">III", 0, 10, 0x7FFFFFFF) + bytes(64))
    whole = Path("old-NETCDF3_CLASSIC.nc").read_bytes()
    write("records.nc", whole[:4] + b"\x7f\xff\xff\xff" + whole[8:])
    write("cut.nc", whole[: len(whole) // 2])
    for suffix in ["h5", "nc"]:
        source = {"h5": "old-latest.h5", "nc": "old-NETCDF4.nc"}[suffix]
        whole = Path(source).read_bytes()
        for part in range(1, 5):
            write(f"cut-{part}-of-hdf5.{suffix}", whole[: len(whole) * part // 5])
    whole = Path("old.parquet").read_bytes()
    write("footer.parquet", whole[:-8] + b"\xff\xff\xff\x7f" + whole[-4:])
    for name, content in pictures():
        write(name, content)
    write("count.pack", signed(b"PACK" + struct.pack(">II", 2, 0xFFFFFFFF)))
    # Two deltas, each of which names an id that is not there; a delta to itself.
    delta = zlib.compress(bytes([1, 1, 1, 65]))
    write("absent.pack", signed(b"PACK" + struct.pack(">II", 2, 2) + 2 * (bytes([0x74]) + bytes(20) + delta)))
    write("itself.pack", signed(b"PACK" + struct.pack(">II", 2, 1) + bytes([0x64, 0]) + delta))
    write("count.idx", b"\xfftOc" + struct.pack(">I", 2) + b"\xff" * 1024 + bytes(40))


def pictures():
    """A page that leads to itself, one of 2^60 pixels, and animations of 2^46 and 2^28 pixels."""
    entry = struct.Struct("<HHII")
    width, length = (entry.pack(tag, 4, 1, 1 << 30) for tag in [256, 257])
    head = b"II*\0" + struct.pack("<IH", 8, 2)
    yield "circle.tif", head + entry.pack(256, 4, 1, 1) + entry.pack(257, 4, 1, 1) + struct.pack("<I", 8)
    yield "pixels.tif", head + width + length + bytes(4)
    yield "offset.tiff", b"MM\0+" + struct.pack(">HHQ", 8, 0, 1 << 63)
    for name, side in [("canvas", (1 << 23) - 1), ("large", (1 << 14) - 1)]:
        canvas = b"VP8X" + struct.pack("<II", 10, 2) + 2 * side.to_bytes(3, "little")
        frame = b"ANMF" + struct.pack("<I", 24) + bytes(16) + b"VP8L" + struct.pack("<I", 0)
        whole = b"WEBP" + canvas + b"ANIM" + struct.pack("<I", 6) + bytes(6) + frame
        yield f"{name}.webp", b"RIFF" + struct.pack("<I", len(whole)) + whole


def signed(pack):
    return pack + hashlib.sha1(pack, usedforsecurity=False).digest()
