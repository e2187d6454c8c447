"""Makes samples of every format with the format's own tools, and describes their contents.

usage: samples.py DIRECTORY

Each format has two files, `old.EXT` and `new.EXT`. The file `expected.json` has the facts of the
first, as found by another reader than backstory's, and sentences about the change to the second.
"""

import bz2
import csv
import gzip
import json
import lzma
import pickle
import pickletools
import sqlite3
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import docx
import nbformat
import numpy
import odf.dc
import odf.meta
import odf.opendocument
import odf.table
import odf.teletype
import odf.text
import openpyxl
import PIL.Image
import pyarrow
import pyarrow.compute
import pyarrow.feather
import pyarrow.ipc
import pyarrow.parquet
import pypdf
import reportlab.pdfgen.canvas
import safetensors
import safetensors.numpy
from elftools.elf.elffile import ELFFile
from reportlab.pdfbase import pdfmetrics
from reportlab.pdfbase.ttfonts import TTFont

from array_samples import climate, hierarchies
from database_samples import databases, logs
from expectation import EXPECTED, expect
from hostile_samples import hostile
from part_samples import parts
from structured_samples import structured


def text():
    Path("old.py").write_text("dt = 0.1\nn = 3\nprint(dt)\n")
    Path("new.py").write_text("dt = 0.01\nn = 3\nprint(dt)\n")
    lines = subprocess.run(["wc", "-l", "old.py"], capture_output=True, text=True, check=True).stdout
    words = subprocess.run(["wc", "-w", "old.py"], capture_output=True, text=True, check=True).stdout
    facts = {"lines": int(lines.split()[0]), "words": int(words.split()[0]), "encoding": "ASCII"}
    expect("text", "old.py", "new.py", facts, ["1 of 3 lines changed", "`dt` 0.1 → 0.01"])


def table():
    rows = [["id", "name", "dose"], ["1", "Ada, B.", "0.5"], ["2", "Bob", "1.5"], ["3", "Cy", ""]]
    with open("old.csv", "w", newline="") as file:
        csv.writer(file).writerows(rows)
    rows[2][2] = "2.5"
    with open("new.csv", "w", newline="") as file:
        csv.writer(file).writerows(rows + [["4", "Di", "1"]])
    with open("old.csv", newline="") as file:
        read = list(csv.DictReader(file))
    doses = [float(row["dose"]) for row in read if row["dose"]]
    columns = [
        {"name": "id", "type": "number", "min": 1.0, "max": 3.0, "mean": 2.0, "empty": 0, "distinct": 3},
        {"name": "name", "type": "text", "empty": 0, "distinct": 3},
        {
            "name": "dose",
            "type": "number",
            "min": min(doses),
            "max": max(doses),
            "mean": sum(doses) / len(doses),
            "empty": 1,
            "distinct": 3,
        },
    ]
    sentences = ["1 row added, 1 cell changed in 1 of 3 rows", "`dose` of 2 1.5 → 2.5"]
    expect("csv", "old.csv", "new.csv", {"rows": len(read), "columns": columns}, sentences)
    for path, dose in [("old.tsv", "1,5"), ("new.tsv", "2,5")]:
        with open(path, "w", newline="") as file:
            csv.writer(file, delimiter="\t").writerows([["id", "dose", "note"], ["1", dose, 'a "b", c']])
    with open("old.tsv", newline="") as file:
        read = list(csv.reader(file, delimiter="\t"))
    facts = {"rows": len(read) - 1, "names_of_columns": read[0]}
    expect("csv with tabs", "old.tsv", "new.tsv", facts, ["`dose` of 1 1,5 → 2,5"])
    long = "x" * 100_000
    for path, end, dose in [("semicolon-old.csv", "A", "0,1"), ("semicolon-new.csv", "B", "0,2")]:
        with open(path, "w", newline="") as file:
            csv.writer(file, delimiter=";").writerows([["id", "dose", "note"], ["1", dose, long + end]])
    end = "x" * 20
    sentences = ["`dose` of 1 0,1 → 0,2", f"`note` of 1 …{end}A → …{end}B"]
    expect("csv with semicolons and huge cells", "semicolon-old.csv", "semicolon-new.csv", {"rows": 1}, sentences)


def notebook():
    def cells(dt):
        made = nbformat.v4.new_notebook(metadata={"kernelspec": {"name": "python3", "display_name": "Python 3"}})
        output = nbformat.v4.new_output("stream", text=f"{dt}\n")
        made.cells = [
            nbformat.v4.new_markdown_cell("# Title", id="title"),
            nbformat.v4.new_code_cell(f"dt = {dt}\nn = 3", id="setup", execution_count=2),
            nbformat.v4.new_code_cell("print(dt)", id="show", execution_count=1, outputs=[output]),
        ]
        return made

    nbformat.write(cells("0.1"), "old.ipynb")
    nbformat.write(cells("0.01"), "new.ipynb")
    read = nbformat.read("old.ipynb", as_version=4)
    counts = [(c.execution_count, at + 1) for at, c in enumerate(read.cells) if c.get("execution_count")]
    facts = {
        "kernel": read.metadata.kernelspec.name,
        "format": f"{read.nbformat}.{read.nbformat_minor}",
        "cells": [{"name": c.id, "type": c.cell_type, "source": c.source.replace("\n", " ")} for c in read.cells],
        "execution_order": [at for _, at in sorted(counts)],
    }
    sentences = ["1 cell changed: `setup` (source)", "1 cell's output changed: `show` (outputs)", "`dt` 0.1 → 0.01"]
    expect("ipynb", "old.ipynb", "new.ipynb", facts, sentences)


def word():
    def make(path, author, second):
        document = docx.Document()
        document.core_properties.author = author
        document.core_properties.title = "A letter & more"
        for paragraph in ["Dear reader", second, "Yours <truly>"]:
            document.add_paragraph(paragraph)
        document.save(path)

    make("old.docx", "Ada", "The dose is small.")
    make("new.docx", "Bob", "The dose is large.")
    read = docx.Document("old.docx")
    facts = {
        "author": read.core_properties.author,
        "title": read.core_properties.title,
        "paragraphs": [paragraph.text for paragraph in read.paragraphs],
    }
    expect("docx", "old.docx", "new.docx", facts, ["1 of 3 paragraphs changed", "The dose is small. → The dose is large.", "author Ada → Bob"])


def workbook():
    def make(path, author, value):
        book = openpyxl.Workbook()
        book.properties.creator = author
        sheet = book.active
        sheet.title = "Doses"
        for row in [["name", "dose"], ["Ada", value], ["Bob", 2]]:
            sheet.append(row)
        sheet["D7"] = True
        book.save(path)

    make("old.xlsx", "Ada", 0.1)
    make("new.xlsx", "Ada", 0.01)
    read = openpyxl.load_workbook("old.xlsx")
    cells = [
        {
            "name": f"{sheet.title}!{cell.coordinate}",
            "value": float(cell.value) if type(cell.value) is int else cell.value,
        }
        for sheet in read
        for row in sheet.iter_rows()
        for cell in row
        if cell.value is not None
    ]
    facts = {"author": read.properties.creator, "cells": cells}
    times = ["created", "modified"]
    expect("xlsx", "old.xlsx", "new.xlsx", facts, ["1 cell changed: `Doses!B2` 0.1 → 0.01"])
    EXPECTED["xlsx"]["ignored"] = times
    book = openpyxl.load_workbook("old.xlsx")
    book["Doses"].title = "Doses of May"
    book["Doses of May"]["B3"] = 3
    book.save("renamed.xlsx")
    sentences = ["sheet `Doses` renamed to `Doses of May`", "1 cell changed: `Doses of May!B3` 2.0 → 3.0"]
    expect("xlsx with a renamed sheet", "old.xlsx", "renamed.xlsx", {}, sentences)
    book = openpyxl.load_workbook("old.xlsx")
    for path, factor in [("twice.xlsx", 2), ("thrice.xlsx", 3)]:
        book["Doses"]["C2"] = f"=B2*{factor}"
        book.save(path)
    facts = {"formulas": [{"name": "Doses!C2", "value": "B2*2"}]}
    sentences = ["1 formula changed: `Doses!C2` B2*2 → B2*3"]
    expect("xlsx with a formula", "twice.xlsx", "thrice.xlsx", facts, sentences)


def opendocument():
    def make(path, author, second):
        document = odf.opendocument.OpenDocumentText()
        document.meta.addElement(odf.meta.InitialCreator(text=author))
        document.meta.addElement(odf.dc.Title(text="A letter & more"))
        document.text.addElement(odf.text.H(outlinelevel=1, text="Heading"))
        document.text.addElement(odf.text.P(text=second))
        document.save(path)

    make("old.odt", "Ada", "A first text")
    make("new.odt", "Bob", "Another text")
    read = odf.opendocument.load("old.odt")

    def said(kind):
        (found,) = read.meta.getElementsByType(kind)
        return odf.teletype.extractText(found)

    facts = {
        "author": said(odf.meta.InitialCreator),
        "title": said(odf.dc.Title),
        "paragraphs": [odf.teletype.extractText(node) for node in read.text.childNodes],
    }
    expect("odt", "old.odt", "new.odt", facts, ["1 of 2 paragraphs changed", "author Ada → Bob"])


def spreadsheet():
    def make(path, dose):
        document = odf.opendocument.OpenDocumentSpreadsheet()
        sheet = odf.table.Table(name="Doses")
        for row in [["name", "dose"], ["Ada", dose], ["Bob", 2.0]]:
            line = odf.table.TableRow()
            for value in row:
                kind = {"valuetype": "float", "value": value} if type(value) is float else {"valuetype": "string"}
                cell = odf.table.TableCell(**kind)
                cell.addElement(odf.text.P(text=str(value)))
                line.addElement(cell)
            sheet.addElement(line)
        document.spreadsheet.addElement(sheet)
        document.save(path)

    make("old.ods", 0.1)
    make("new.ods", 0.01)
    cells = []
    for sheet in odf.opendocument.load("old.ods").getElementsByType(odf.table.Table):
        for row, line in enumerate(sheet.getElementsByType(odf.table.TableRow), 1):
            for column, cell in zip("ABC", line.getElementsByType(odf.table.TableCell), strict=False):
                value = cell.getAttribute("value")
                value = odf.teletype.extractText(cell) if value is None else float(value)
                cells.append({"name": f"{sheet.getAttribute('name')}!{column}{row}", "value": value})
    expect("xlsx of OpenDocument", "old.ods", "new.ods", {"cells": cells}, ["1 cell changed: `Doses!B2` 0.1 → 0.01"])


def archives():
    def files(value):
        return {"a.txt": b"one\n", "dir/b.txt": value}

    for path, value in [("old.zip", b"two\n"), ("new.zip", b"three\n")]:
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, content in files(value).items():
                archive.writestr(zipfile.ZipInfo(name), content)
    with zipfile.ZipFile("old.zip") as archive:
        members = [{"name": i.filename, "size": i.file_size, "crc32": f"{i.CRC:08x}"} for i in archive.infolist()]
    sentences = ["1 member changed: `dir/b.txt` (crc32, size)"]
    expect("zip", "old.zip", "new.zip", {"members": members}, sentences)
    Path("tree/dir").mkdir(parents=True)
    Path("tree/a.txt").write_bytes(b"one\n")
    Path("tree/link").symlink_to("a.txt")
    subprocess.run(["tar", "-C", "tree", "-czf", "old.tar.gz", "a.txt", "dir", "link"], check=True)
    Path("tree/dir/new").write_bytes(b"1")
    subprocess.run(["tar", "-C", "tree", "-czf", "new.tar.gz", "a.txt", "dir", "link"], check=True)
    with tarfile.open("old.tar.gz") as archive:
        found = {member.name: member.size for member in archive if member.isfile()}
    facts = {"members_number": 3, "sizes": found, "compression": "gzip"}
    expect("tar", "old.tar.gz", "new.tar.gz", facts, ["1 member added: `dir/new`"])
    for suffix, codec in [("xz", "xz"), ("bz2", "bzip2"), ("zst", "zstd")]:
        for side in ["old", "new"]:
            plain = gzip.decompress(Path(f"{side}.tar.gz").read_bytes())
            with compressed(f"{side}.tar.{suffix}") as packed:
                packed.write(plain)
        facts = {"members_number": 3, "sizes": found, "compression": codec}
        expect(f"tar with {codec}", f"old.tar.{suffix}", f"new.tar.{suffix}", facts, ["1 member added: `dir/new`"])


def compressed(path):
    """A file to write into, which is compressed by its suffix."""
    if path.endswith(".xz"):
        return lzma.open(path, "wb")
    if path.endswith(".bz2"):
        return bz2.open(path, "wb")
    return pyarrow.CompressedOutputStream(path, "zstd")


def elf():
    Path("a.c").write_text("int answer(void) { return 42; }\nint asked;\n")
    Path("b.c").write_text("int answer(void) { return 42; }\nint asked;\nint also;\n")
    build = ["gcc", "-g", "-shared", "-fPIC", "-Wl,--build-id=sha1", "-o"]
    subprocess.run([*build, "old.so", "a.c"], check=True)
    subprocess.run([*build, "new.so", "b.c"], check=True)
    with open("old.so", "rb") as file:
        build_id = ELFFile(file).get_section_by_name(".note.gnu.build-id")
        build_id = next(build_id.iter_notes())["n_desc"]
    facts = {"build_id": build_id, "machine": "x86-64", **compiled("old.so")}
    expect("elf", "old.so", "new.so", facts, ["1 symbol added: `also`"])
    # The relocations of i386 have their addends in the section.
    for machine, option in [("x86-64", "-m64"), ("i386", "-m32")]:
        old, new = f"{machine}-old.o", f"{machine}-new.o"
        for source, path in [("a.c", old), ("b.c", new)]:
            subprocess.run(["gcc", option, "-g", "-c", "-o", path, source], check=True)
        facts = {"type": "object file", "machine": machine, **compiled(old)}
        expect(f"elf object file of {machine}", old, new, facts, ["1 symbol added: `also`"])


def compiled(path):
    """The compilers that DWARF names, and the global symbols."""
    with open(path, "rb") as file:
        read = ELFFile(file)
        producers = {
            unit.get_top_DIE().attributes["DW_AT_producer"].value.decode()
            for unit in read.get_dwarf_info().iter_CUs()
            if "DW_AT_producer" in unit.get_top_DIE().attributes
        }
        sections = [read.get_section_by_name(name) for name in (".symtab", ".dynsym")]
        names = {
            symbol.name
            for section in sections
            if section
            for symbol in section.iter_symbols()
            if symbol["st_info"]["bind"] in ("STB_GLOBAL", "STB_WEAK") and symbol.name
        }
    return {
        "producers": [{"name": name, "value": None} for name in sorted(producers)],
        "names_of_symbols": sorted(names),
    }


def tensors():
    arrays = {"w": numpy.arange(6, dtype=numpy.float32).reshape(2, 3), "b": numpy.zeros(3, dtype=numpy.int64)}
    safetensors.numpy.save_file(arrays, "old.safetensors", metadata={"epoch": "1"})
    arrays["b"] = numpy.ones(3, dtype=numpy.int64)
    safetensors.numpy.save_file(arrays, "new.safetensors", metadata={"epoch": "2"})
    with safetensors.safe_open("old.safetensors", framework="numpy") as read:
        shapes = {name: read.get_slice(name).get_shape() for name in read.keys()}
        parameters = sum(read.get_tensor(name).size for name in read.keys())
    facts = {"parameters": parameters, "shapes": shapes, "metadata epoch": "1"}
    sentences = ["1 tensor changed: `b` (values)", "metadata epoch 1 → 2"]
    expect("safetensors", "old.safetensors", "new.safetensors", facts, sentences)


def pickles():
    class_of_protocol = {"set": {1, 2}, "path": Path("x"), "numbers": [1, 2.5, 2**80, None, True], "text": "ä" * 300}
    Path("old.pkl").write_bytes(pickle.dumps(class_of_protocol, 4))
    class_of_protocol["path"] = complex(1, 2)
    Path("new.pkl").write_bytes(pickle.dumps(class_of_protocol, 4))
    names = [opcode.name for opcode, _, _ in pickletools.genops(Path("old.pkl").read_bytes())]
    counts = {name: names.count(name) for name in set(names)}
    facts = {"protocol": 4, "opcodes": counts, "instructions_number": len(names)}
    expect("pickle", "old.pkl", "new.pkl", facts, ["1 imported name added: `builtins.complex`"])
    for protocol in range(6):
        content = pickle.dumps(
            [class_of_protocol, {"a": b"bytes", "b": bytearray(b"x"), (1, -70000): 1 << 70}], protocol
        )
        Path(f"protocol-{protocol}.pkl").write_bytes(content)
        names = [opcode.name for opcode, _, _ in pickletools.genops(content)]
        facts = {"opcodes": {name: names.count(name) for name in set(names)}}
        file = f"protocol-{protocol}.pkl"
        expect(f"pickle of protocol {protocol}", file, file, facts, [])


def data_frames():
    def frame(dose):
        return pyarrow.table({"id": [1, 2, 3], "name": ["Ada", "Bob", None], "dose": [0.5, dose, 2.5]})

    sentences = ["1 cell changed in 1 of 3 rows", "`dose` of 2 1.5 → 0.25"]
    pyarrow.parquet.write_table(frame(1.5), "old.parquet")
    pyarrow.parquet.write_table(frame(0.25), "new.parquet")
    read = pyarrow.parquet.read_metadata("old.parquet")
    columns = [read.row_group(0).column(at) for at in range(read.num_columns)]
    missing = {column.path_in_schema: column.statistics.null_count for column in columns}
    facts = {
        "rows": read.num_rows,
        "row_groups": read.num_row_groups,
        "created_by": read.created_by,
        "missing": missing,
        "minima": {column.path_in_schema: column.statistics.min for column in columns},
        "maxima": {column.path_in_schema: column.statistics.max for column in columns},
    }
    expect("parquet", "old.parquet", "new.parquet", facts, sentences)
    pyarrow.feather.write_feather(frame(1.5), "old.feather")
    pyarrow.feather.write_feather(frame(0.25), "new.feather")
    read = pyarrow.feather.read_table("old.feather")
    missing = {name: read.column(name).null_count for name in read.column_names}
    numbers = [name for name in read.column_names if read.column(name).type != pyarrow.string()]
    extremes = {name: pyarrow.compute.min_max(read.column(name)).as_py() for name in numbers}
    facts = {
        "rows": read.num_rows,
        "missing": missing,
        "minima": {name: float(found["min"]) for name, found in extremes.items()},
        "maxima": {name: float(found["max"]) for name, found in extremes.items()},
    }
    expect("arrow", "old.feather", "new.feather", facts, sentences)
    pyarrow.feather.write_feather(frame(1.5), "zstd-old.feather", compression="zstd")
    pyarrow.feather.write_feather(frame(0.25), "zstd-new.feather", compression="zstd")
    expect("arrow with zstd", "zstd-old.feather", "zstd-new.feather", facts, sentences)
    for path, dose in [("old.arrows", 1.5), ("new.arrows", 0.25)]:
        with pyarrow.ipc.new_stream(path, frame(dose).schema) as stream:
            stream.write_table(frame(dose))
    expect("arrow with a stream", "old.arrows", "new.arrows", facts, sentences)
    for codec in ["none", "gzip", "lz4", "zstd"]:
        old, new = f"{codec}-old.parquet", f"{codec}-new.parquet"
        pyarrow.parquet.write_table(frame(1.5), old, compression=codec)
        pyarrow.parquet.write_table(frame(0.25), new, compression=codec)
        column = pyarrow.parquet.read_metadata(old).row_group(0).column(0)
        expect(f"parquet with {codec}", old, new, {"codec": column.compression}, sentences)


def pictures():
    # Each column is brighter than the one before: all bits of the difference hash are set.
    picture = PIL.Image.new("L", (90, 48))
    picture.putdata([x * 2 for _ in range(48) for x in range(90)])
    for path, maker, quality in [("old.jpg", "Acme", 95), ("new.jpg", "Other", 60)]:
        exif = PIL.Image.Exif()
        exif[0x010F] = maker
        picture.save(path, quality=quality, exif=exif)
    with PIL.Image.open("old.jpg") as read:
        fields = [{"name": "Make", "value": read.getexif()[0x010F]}]
        facts = {"format": read.format, "size": f"{read.width}×{read.height}", "EXIF_fields": fields}
    sentences = [
        "1 EXIF field changed: `Make` Acme → Other",
        "the pictures look the same (0 of 64 bits of the difference hash differ)",
    ]
    expect("image", "old.jpg", "new.jpg", facts, sentences)
    looks(picture)
    pages(picture)
    animations(picture)
    for name in ["pages", "large offsets", "a palette", "frames of webp", "frames of gif"]:
        EXPECTED[f"image with {name}"]["by_bytes"] = True


def looks(picture):
    """A picture with a dark part, and one that is mirrored: 1 bit and all bits differ."""
    dark = picture.copy()
    dark.paste(0, (41, 19, 49, 23))
    mirrored = picture.transpose(PIL.Image.Transpose.FLIP_LEFT_RIGHT)
    for name, other in [("plain", picture), ("dark", dark), ("mirrored", mirrored)]:
        other.save(f"{name}.png")
    facts = {"format": "PNG", "size": "90×48"}
    bits = "bits of the difference hash"
    alike = [f"the pictures look alike (1 of 64 {bits} differs)"]
    different = [f"the pictures look different (64 of 64 {bits} differ)"]
    for path, other in [("old.bmp", picture), ("new.bmp", dotted(picture, (2, 3)))]:
        other.save(path)
    sentences = ["image of 90×48: 0.02 % of the pixels differ, within 1×1 pixels at 2,3"]
    expect("image without compression", "old.bmp", "new.bmp", {"format": "BMP", "size": "90×48"}, sentences)
    expect("image with a dark part", "plain.png", "dark.png", facts, alike)
    expect("image that is mirrored", "plain.png", "mirrored.png", facts, different)


def dotted(picture, *dots):
    """The picture with some white pixels."""
    picture = picture.copy()
    for dot in dots:
        picture.putpixel(dot, 255)
    return picture


def described(path):
    with PIL.Image.open(path) as read:
        return {"format": read.format, "size": f"{read.width}×{read.height}", "of": getattr(read, "n_frames", 1)}


def pages(picture):
    old = [picture] * 12
    new = [picture] * 11 + [dotted(picture, (4, 6), (7, 9))]
    for path, all_pages, rest in [
        ("old.tif", old, {"compression": "tiff_lzw"}),
        ("new.tif", new, {"compression": "tiff_adobe_deflate"}),
        ("old.big.tiff", old[:2], {"big_tiff": True}),
        ("new.big.tiff", [dotted(picture, (1, 1)), picture, picture], {"big_tiff": True}),
    ]:
        all_pages[0].save(path, save_all=True, append_images=all_pages[1:], software="Acme", **rest)
    facts = described("old.tif")
    facts["pages"] = facts.pop("of")
    sentences = ["1 of 12 pages changed", "page 12: image of 90×48: 0.05 % of the pixels differ, within 4×4 pixels at 4,6"]
    expect("image with pages", "old.tif", "new.tif", facts, sentences)
    facts = described("old.big.tiff")
    facts["pages"] = facts.pop("of")
    expect("image with large offsets", "old.big.tiff", "new.big.tiff", facts, ["1 of 2 pages changed", "pages 2 → 3"])
    # Heights: numbers that are no colours.
    for path, height in [("old.heights.tif", 0.5), ("new.heights.tif", 0.25)]:
        heights = picture.convert("F")
        heights.putpixel((3, 2), height)
        heights.save(path)
    sentences = ["image of 90×48: 0.02 % of the pixels differ, within 1×1 pixels at 3,2"]
    expect("image with heights", "old.heights.tif", "new.heights.tif", {"format": "TIFF", "pages": 1}, sentences)
    for path, other in [("old.16.tif", picture), ("new.16.tif", dotted(picture, (2, 3)))]:
        other.convert("I;16B").save(path)
    if not Path("old.16.tif").read_bytes().startswith(b"MM"):
        raise SystemExit("old.16.tif has another order of bytes than wanted")
    sentences = ["image of 90×48: 0.02 % of the pixels differ, within 1×1 pixels at 2,3"]
    expect("image with another byte order", "old.16.tif", "new.16.tif", {"size": "90×48"}, sentences)
    # A table of colours, which the library does not decode.
    for path, other in [("old.palette.tif", picture), ("new.palette.tif", dotted(picture, (2, 3)))]:
        other.convert("P").save(path, software=path)
    sentences = ["1 EXIF field changed: `Software` old.palette.tif → new.palette.tif"]
    expect("image with a palette", "old.palette.tif", "new.palette.tif", {"size": "90×48"}, sentences)


def animations(picture):
    exif = PIL.Image.Exif()
    exif[0x010F] = "Acme"
    for path, other in [("old.webp", picture), ("new.webp", dotted(picture, (5, 5)))]:
        other.save(path, lossless=True, exif=exif)
    facts = described("old.webp")
    facts["frames"] = facts.pop("of")
    facts["EXIF_fields"] = [{"name": "Make", "value": "Acme"}]
    sentences = [
        "image of 90×48: 0.02 % of the pixels differ, within 1×1 pixels at 5,5",
        "the pictures look the same (0 of 64 bits of the difference hash differ)",
    ]
    expect("image with lossless colours", "old.webp", "new.webp", facts, sentences)
    frames = [dotted(picture, (x, 0)) for x in range(3)]
    for suffix, rest in [("webp", {"lossless": True}), ("gif", {})]:
        for age, all_frames in [("old", frames), ("new", [*frames[:2], dotted(picture, (9, 9))])]:
            all_frames[0].save(f"{age}.moving.{suffix}", save_all=True, append_images=all_frames[1:], duration=40, **rest)
        facts = described(f"old.moving.{suffix}")
        facts["frames"] = facts.pop("of")
        names = [f"{age}.moving.{suffix}" for age in ["old", "new"]]
        expect(f"image with frames of {suffix}", *names, facts, ["1 of 3 frames changed"])


def dumps():
    database = sqlite3.connect(":memory:")
    database.executescript(
        """
        CREATE TABLE accounts (id INTEGER, name TEXT); CREATE TABLE "odd; name" (x);
        INSERT INTO accounts VALUES (1, 'a;b (1), (2)'), (2, 'it''s');
        """
    )
    Path("old.sql").write_text("".join(f"{line}\n" for line in database.iterdump()))
    tables = [name for (name,) in database.execute("SELECT name FROM sqlite_master")]
    count = {name: database.execute(f'SELECT count(*) FROM "{name}"').fetchone()[0] for name in tables}
    database.execute("INSERT INTO accounts VALUES (3, 'c')")
    Path("new.sql").write_text("".join(f"{line}\n" for line in database.iterdump()))
    sentences = ["1 table changed: `accounts` rows 2 → 3", "1 line added"]
    expect("sql", "old.sql", "new.sql", {"rows_of_tables": count}, sentences)
    copied = "COPY public.t (a) FROM stdin;\n1;\n2\n\\.\n\nINSERT INTO t VALUES (1), (2);\n"
    Path("copied.sql").write_text(copied)
    expect("sql of PostgreSQL", "copied.sql", "copied.sql", {"rows_of_tables": {"public.t": 2, "t": 2}}, [])


def git():
    def run(*words):
        made = subprocess.run(["git", "-C", "repository", *words], capture_output=True, text=True, check=True)
        return made.stdout.strip()

    Path("repository").mkdir()
    run("init", "-q", "-b", "main")
    run("config", "user.name", "Ada")
    run("config", "user.email", "ada@example.org")
    objects = []
    for value in ["one", "two"]:
        Path("repository/file").write_text(value)
        run("add", "file")
        run("commit", "-q", "-m", f"Add {value}")
        commit = run("rev-parse", "HEAD")
        objects.append((commit, f"repository/.git/objects/{commit[:2]}/{commit[2:]}"))
    (first, old), (_, new) = objects
    facts = {
        "type": run("cat-file", "-t", first),
        "tree": run("rev-parse", f"{first}^{{tree}}"),
        "message": run("log", "-1", "--format=%B", first),
    }
    expect("git", old, new, facts, ["message Add one → Add two"])


def references():
    """Trees, tags and references of git, each in the form in which git wrote it."""
    # The repository itself is packed later.
    subprocess.run(["cp", "-r", "repository", "referred"], check=True)

    def run(*words):
        made = subprocess.run(["git", "-C", "referred", *words], capture_output=True, text=True, check=True)
        return made.stdout.strip()

    def loose(name):
        return f"referred/.git/objects/{name[:2]}/{name[2:]}"

    first, second = run("rev-list", "--reverse", "main").splitlines()
    before, after = (run("rev-parse", f"{commit}^{{tree}}") for commit in (first, second))
    mode, _, blob, name = run("ls-tree", before).split()
    facts = {"type": "tree", "entries": [{"name": name, "mode": mode, "id": blob}]}
    expect("git with a tree", loose(before), loose(after), facts, ["1 entry changed: `file` (id)"])

    for name, commit in [("v1", first), ("v2", second)]:
        run("tag", "-a", "-m", f"Tag {name}", name, commit)
    before, after = (run("rev-parse", name) for name in ("v1", "v2"))
    facts = {"type": run("cat-file", "-t", before), "object": first, "type_of_object": "commit", "tag": "v1"}
    sentences = [f"object {first} → {second}", "tag v1 → v2", "message Tag v1 → Tag v2"]
    expect("git with a tag", loose(before), loose(after), facts, sentences)

    run("branch", "old", first)
    old, new = "referred/.git/refs/heads/old", "referred/.git/refs/heads/main"
    expect("git with a reference", old, new, {"commit": run("rev-parse", "old")}, [f"commit {first} → {second}"])
    head = "referred/.git/HEAD"
    expect("git with a symbolic reference", head, head, {"refers_to": run("symbolic-ref", "HEAD")}, [])

    subprocess.run(["cp", "-r", "referred", "gathered"], check=True)
    subprocess.run(["git", "-C", "gathered", "pack-refs", "--all"], check=True)
    listed = run("for-each-ref", "--format=%(refname) %(objectname)").splitlines()
    facts = {"references": [dict(zip(("name", "value"), one.split(), strict=True)) for one in listed]}
    packed = "gathered/.git/packed-refs"
    expect("git with packed references", packed, packed, facts, [])


def packs():
    # Packing removes the objects that the sample above is.
    subprocess.run(["cp", "-r", "repository", "packed"], check=True)

    def run(*words):
        made = subprocess.run(["git", "-C", "packed", *words], capture_output=True, text=True, check=True)
        return made.stdout.strip()

    def packed(name):
        # A large file that changes little becomes a delta.
        run("repack", "-adq", "--depth=50")
        (pack,) = Path("packed/.git/objects/pack").glob("*.pack")
        for suffix in [".pack", ".idx"]:
            Path(f"{name}{suffix}").write_bytes(pack.with_suffix(suffix).read_bytes())
        lines = run("cat-file", "--batch-all-objects", "--batch-check").splitlines()
        return sorted((line.split() for line in lines), key=lambda one: one[0])

    for at in range(8):
        Path("packed/large").write_text("".join(f"line {n * n} {n + at if n % 97 == 0 else n}\n" for n in range(200)))
        run("add", "large")
        run("commit", "-q", "-m", f"Add large {at}")
    run("tag", "-a", "-m", "A tag", "v1")
    listed = packed("old")
    run("commit", "-q", "--allow-empty", "-m", "Add nothing")
    (added,) = {one[0] for one in packed("new")} - {one[0] for one in listed}
    objects = [{"name": name, "type": kind, "size": int(size)} for name, kind, size in listed]
    facts = {"objects": objects, "objects_number": len(listed), "tags": 1, "commits": 10}
    expect("pack", "old.pack", "new.pack", facts, [f"1 object added: `{added}`", "commits 10 → 11"])
    objects = [{"name": one["name"], "value": None} for one in objects]
    facts = {"objects": objects, "pack": Path("old.pack").read_bytes()[-20:].hex()}
    expect("pack with an index", "old.idx", "new.idx", facts, [f"1 object added: `{added}`"])
    # Deltas that name their base by its id.
    made = ["git", "-C", "packed", "pack-objects", "--all", "--stdout", "-q", "--no-reuse-delta"]
    pack = subprocess.run(made, stdin=subprocess.DEVNULL, capture_output=True, check=True).stdout
    Path("by-id.pack").write_bytes(pack)
    expect("pack with ids", "by-id.pack", "by-id.pack", {"commits": 11}, [])


def documents():
    # The font is embedded, so that its texts are indexes of glyphs.
    pdfmetrics.registerFont(TTFont("Vera", "Vera.ttf"))

    def make(path, second):
        document = reportlab.pdfgen.canvas.Canvas(path, invariant=1)
        document.setTitle("A report")
        document.setAuthor("Ada Bär")
        for page, text in enumerate(["The first page", second]):
            document.setFont("Helvetica", 12)
            document.drawString(72, 720, text)
            document.setFont("Vera", 12)
            document.drawString(72, 700, f"Page {page + 1} (one) µ")
            document.showPage()
        document.save()

    make("old.pdf", "The dose is 0.1")
    make("new.pdf", "The dose is 0.01")
    read = pypdf.PdfReader("old.pdf")
    facts = {
        "pages": len(read.pages),
        "title": read.metadata.title,
        "author": read.metadata.author,
        "producer": read.metadata.producer,
        "lines": [line for page in read.pages for line in page.extract_text().splitlines()],
    }
    expect("pdf", "old.pdf", "new.pdf", facts, ["1 of 4 lines changed"])


def main():
    for make in [
        text,
        table,
        notebook,
        word,
        workbook,
        opendocument,
        spreadsheet,
        archives,
        elf,
        tensors,
        pickles,
        data_frames,
        hierarchies,
        climate,
        pictures,
        dumps,
        databases,
        logs,
        git,
        references,
        packs,
        documents,
        structured,
    ]:
        make()
    hostile()
    parts()
    Path("expected.json").write_text(json.dumps(EXPECTED))


if __name__ == "__main__":
    import os

    os.chdir(sys.argv[1])
    main()
