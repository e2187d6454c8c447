"""Makes files whose parts have known places, with the formats' own tools.

The file `parts.json` has a list of questions. Each value that is asked about stands once in its
file, so that a search finds its place. The places of compressed parts are those that `zipfile` and
`pyarrow` tell.
"""

import gzip
import io
import json
import sqlite3
import struct
import tarfile
import zipfile
from pathlib import Path

import docx
import h5py
import nbformat
import netCDF4
import numpy
import odf.opendocument
import odf.table
import odf.text
import openpyxl
import pyarrow
import pyarrow.feather
import pyarrow.ipc
import pyarrow.parquet

QUESTIONS = []


def ask(path, kind, name, ranges, coarse=False):
    QUESTIONS.append({"file": str(path), kind: name, "ranges": [list(one) for one in ranges], "coarse": coarse})


def once(path, value):
    """The range of bytes that are in a file once."""
    content = Path(path).read_bytes()
    assert content.count(value) == 1, (path, value)
    start = content.index(value)
    return start, start + len(value)


def text_parts(directory):
    rows = [{"name": "Ada \u00e4 \"q\"", "price": 17.25}, {"name": "", "price": -3e-7, "a key": [None, True]}]
    for indent in [None, 2]:
        path = directory / f"rows-{indent}.json"
        path.write_text(json.dumps({"rows": rows, "end": "last"}, indent=indent))
        ask(path, "member", "rows[0].price", [once(path, b"17.25")])
        ask(path, "member", "$.rows[1].price", [once(path, b"-3e-07")])
        ask(path, "member", "rows[0].name", [once(path, b'Ada \\u00e4 \\"q\\"')])
        ask(path, "member", 'rows[1]["a key"][1]', [once(path, b"true")])
        ask(path, "member", "end", [once(path, b"last")])
    path = directory / "rows.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    ask(path, "member", "[1].price", [once(path, b"-3e-07")])
    path = directory / "cells.ipynb"
    output = nbformat.v4.new_output("stream", text="forty-two\n")
    cells = [
        nbformat.v4.new_markdown_cell("# The title", id="title"),
        nbformat.v4.new_code_cell("print('x')", id="show", outputs=[output]),
    ]
    nbformat.write(nbformat.v4.new_notebook(cells=cells), path)
    ask(path, "cell", "2.outputs[0].text[0]", [once(path, b"forty-two\\n")])
    ask(path, "cell", "show.source[0]", [once(path, b"print('x')")])
    ask(path, "member", "cells[0].source[0]", [once(path, b"# The title")])


def member(path, name):
    """The range of a member's data, by the two headers of the archive."""
    with zipfile.ZipFile(path) as archive:
        info = archive.getinfo(name)
    header = Path(path).read_bytes()[info.header_offset :][:30]
    lengths = struct.unpack("<HH", header[26:30])
    start = info.header_offset + 30 + sum(lengths)
    return start, start + info.compress_size


def packed(path, target, method, changes=None):
    """Packs the members of an archive again, with some of them changed or added."""
    with zipfile.ZipFile(path) as old, zipfile.ZipFile(target, "w", method) as new:
        members = {info.filename: old.read(info) for info in old.infolist()} | (changes or {})
        for name, content in members.items():
            new.writestr(name, content)


def archives(directory):
    path = directory / "plain.tar"
    with tarfile.open(path, "w") as archive:
        for name, content in [("a.txt", b"a first member\n"), ("dir/b.txt", b"a second member\n")]:
            info = tarfile.TarInfo(name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    ask(path, "member", "dir/b.txt", [once(path, b"a second member\n")])
    smaller = directory / "plain.tar.gz"
    smaller.write_bytes(gzip.compress(path.read_bytes()))
    ask(smaller, "member", "dir/b.txt", [(0, smaller.stat().st_size)], coarse=True)


def stored(path, target):
    packed(path, target, zipfile.ZIP_STORED)


def shared(path, target):
    """Puts the texts of a workbook into shared strings, as other programs than openpyxl do."""
    with zipfile.ZipFile(path) as old:
        sheet = old.read("xl/worksheets/sheet2.xml")
        relations = old.read("xl/_rels/workbook.xml.rels")
    inline = b't="inlineStr"><is><t>a shared text</t></is>'
    assert inline in sheet
    namespace = b'xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"'
    kind = b"http://schemas.openxmlformats.org/officeDocument/2006/relationships/sharedStrings"
    relation = b'<Relationship Id="rId9" Type="' + kind + b'" Target="sharedStrings.xml"/></Relationships>'
    changes = {
        "xl/worksheets/sheet2.xml": sheet.replace(inline, b't="s"><v>1</v>'),
        "xl/_rels/workbook.xml.rels": relations.replace(b"</Relationships>", relation),
        "xl/sharedStrings.xml": b"<sst " + namespace + b"><si><t>no</t></si><si><t>a shared text</t></si></sst>",
    }
    with zipfile.ZipFile(path) as old:
        types = old.read("[Content_Types].xml")
    strings = b'<Override PartName="/xl/sharedStrings.xml" ContentType="application/vnd.openxmlformats-officedocument.'
    strings += b'spreadsheetml.sharedStrings+xml"/></Types>'
    changes["[Content_Types].xml"] = types.replace(b"</Types>", strings)
    packed(path, target, zipfile.ZIP_DEFLATED, changes)
    assert openpyxl.load_workbook(target)["Other & one"]["A1"].value == "a shared text"


def workbooks(directory):
    path = directory / "book.xlsx"
    book = openpyxl.Workbook()
    book.active.title = "First"
    book.active["B3"] = 987.5
    other = book.create_sheet("Other & one")
    other["A1"], other["AB12"] = "a shared text", 123.25
    book.save(directory / "inline.xlsx")
    shared(directory / "inline.xlsx", path)
    inline = directory / "stored-inline.xlsx"
    stored(directory / "inline.xlsx", inline)
    ask(inline, "cell", "Other & one!A1", [once(inline, b"<t>a shared text</t>")])
    sheets = [member(path, f"xl/worksheets/sheet{number}.xml") for number in (1, 2)]
    strings = member(path, "xl/sharedStrings.xml")
    ask(path, "cell", "B3", [sheets[0]], coarse=True)
    ask(path, "cell", "First!B3", [sheets[0]], coarse=True)
    ask(path, "cell", "Other & one!AB12", [sheets[1]], coarse=True)
    ask(path, "cell", "'Other & one'!A1", sorted([sheets[1], strings]), coarse=True)
    ask(path, "member", "xl/sharedStrings.xml", [strings])
    plain = directory / "stored.xlsx"
    stored(path, plain)
    ask(plain, "cell", "B3", [once(plain, b"987.5")])
    ask(plain, "cell", "Other & one!AB12", [once(plain, b"123.25")])
    start, end = once(plain, b"<t>a shared text</t>")
    number = once(plain, b'r="A1" t="s"><v>1</v>')[1] - len("1</v>")
    ask(plain, "cell", "Other & one!A1", sorted([(number, number + 1), (start, end)]))


def spreadsheet(directory):
    path = directory / "book.ods"
    document = odf.opendocument.OpenDocumentSpreadsheet()
    for name in ["First", "Second"]:
        sheet = odf.table.Table(name=name)
        sheet.addElement(odf.table.TableRow(numberrowsrepeated=3))
        line = odf.table.TableRow(numberrowsrepeated=2)
        line.addElement(odf.table.TableCell(numbercolumnsrepeated=2))
        cell = odf.table.TableCell(valuetype="string")
        cell.addElement(odf.text.P(text=f"in {name}"))
        line.addElement(cell)
        sheet.addElement(line)
        document.spreadsheet.addElement(sheet)
    document.save(path)
    ask(path, "cell", "Second!C5", [member(path, "content.xml")], coarse=True)
    plain = directory / "stored.ods"
    stored(path, plain)
    for cell, text in [("C4", b"First"), ("First!C5", b"First"), ("Second!C4", b"Second")]:
        ask(plain, "cell", cell, [once(plain, b"<text:p>in " + text + b"</text:p>")])


def chunk(column):
    start = column.data_page_offset
    if column.has_dictionary_page:
        start = min(start, column.dictionary_page_offset)
    return start, start + column.total_compressed_size


def columns(directory):
    table = pyarrow.table(
        {
            "id": pyarrow.array(range(40)),
            "name": [f"name {number % 7}" for number in range(40)],
            "pair": [{"x": number / 8, "y": number} for number in range(40)],
        }
    )
    path = directory / "groups.parquet"
    pyarrow.parquet.write_table(table, path, row_group_size=16)
    read = pyarrow.parquet.ParquetFile(path).metadata
    for cell, named, group, wanted in [
        ("A2", "id[0]", 0, [0]),
        ("A17", "id[15]", 0, [0]),
        ("B18", "name[16]", 1, [1]),
        ("C41", "pair[39]", 2, [2, 3]),
    ]:
        ranges = [chunk(read.row_group(group).column(column)) for column in wanted]
        joined = [(ranges[0][0], ranges[-1][1])]
        ask(path, "cell", cell, joined, coarse=True)
        ask(path, "member", named, joined, coarse=True)
    ask(path, "member", "pair.y[0]", [chunk(read.row_group(0).column(3))], coarse=True)
    batches = [pyarrow.record_batch({"a": [number + 0.1], "b": [number + 0.2]}) for number in range(3)]
    path = directory / "plain.arrow"
    with pyarrow.ipc.new_file(path, batches[0].schema) as file:
        for batch in batches:
            file.write_batch(batch)
    ask(path, "cell", "B3", [once(path, struct.pack("<d", 1.2))])
    ask(path, "member", "a[0]", [once(path, struct.pack("<d", 0.1))])
    there = {0, 2, 5, 7, 8, 11, 13}
    values = [number + 0.3 if number in there else None for number in range(16)]
    missing = pyarrow.record_batch({"a": pyarrow.array(values)})
    path = directory / "missing.arrow"
    with pyarrow.ipc.new_file(path, missing.schema) as file:
        file.write_batch(missing)
    bitmap = once(path, bytes([0b10100101, 0b00101001]))[0]
    ask(path, "cell", "A2", [(bitmap, bitmap + 1), once(path, struct.pack("<d", 0.3))], coarse=True)
    ask(path, "cell", "A13", [(bitmap + 1, bitmap + 2), once(path, struct.pack("<d", 11.3))], coarse=True)
    path = directory / "stream.arrows"
    with pyarrow.ipc.new_stream(path, batches[0].schema) as file:
        for batch in batches:
            file.write_batch(batch)
    ask(path, "cell", "B4", [once(path, struct.pack("<d", 2.2))])


def merged(ranges):
    """The ranges in order, joined where one ends at the start of the next."""
    found = []
    for start, end in sorted(ranges):
        if found and found[-1][1] == start:
            start = found.pop()[0]
        found.append((start, end))
    return found


def datasets(directory):
    path = directory / "numbers.h5"
    numbers = numpy.arange(36, dtype="<f8").reshape(6, 6)
    with h5py.File(path, "w") as file:
        file["runs/plain"] = numbers
        file.create_dataset("chunked", data=numbers, chunks=(2, 4))
        file.create_dataset("packed", data=numbers, chunks=(3, 3), compression="gzip")
        sparse = file.create_dataset("sparse", shape=(4, 8), dtype="f8", chunks=(2, 4))
        sparse[2:4, 0:4] = numpy.arange(8).reshape(2, 4)
        file["one [odd] name"] = numpy.arange(4, dtype="i2")
        file["text"] = numpy.array([b"first", b"other"])
    with h5py.File(path) as file:
        start = file["runs/plain"].id.get_offset()
        ask(path, "member", "/runs/plain", [(start, start + 36 * 8)])
        ask(path, "member", "runs/plain[2][1]", [(start + 13 * 8, start + 14 * 8)])
        ask(path, "member", "runs/plain[5]", [(start + 30 * 8, start + 36 * 8)])
        start = file["one [odd] name"].id.get_offset()
        ask(path, "member", "one [odd] name[3]", [(start + 6, start + 8)])
        ask(path, "member", "text[1]", [once(path, b"other")])
        places = {}
        for name in ["chunked", "packed", "sparse"]:
            dataset = file[name].id
            chunks = [dataset.get_chunk_info(number) for number in range(dataset.get_num_chunks())]
            places[name] = {one.chunk_offset: (one.byte_offset, one.byte_offset + one.size) for one in chunks}
    path = directory / "moved.h5"
    with h5py.File(path, "w", userblock_size=512) as file:
        file["x"] = [1.5, 13.390625]
    ask(path, "member", "x[1]", [once(path, struct.pack("<d", 13.390625))])
    path = directory / "moved.nc"
    with netCDF4.Dataset(path, "w") as file:
        file.createDimension("x", 3)
        file.createGroup("runs").createVariable("speed", "f8", ("x",))[:] = [1.5, 17.140625, 2.5]
    ask(path, "member", "/runs/speed[1]", [once(path, struct.pack("<d", 17.140625))])
    path = directory / "numbers.h5"
    chunked, packed = places["chunked"], places["packed"]
    first, last = chunked[(2, 0)][0], chunked[(2, 4)][0]
    ask(path, "member", "chunked[3][5]", [(last + 5 * 8, last + 6 * 8)])
    row = [(first + 32, first + 64), (last + 32, last + 64)]
    ask(path, "member", "chunked[3]", merged(row), coarse=True)
    ask(path, "member", "/packed[4][4]", [packed[(3, 3)]], coarse=True)
    ask(path, "member", "packed", merged(packed.values()))
    [(start, end)] = places["sparse"].values()
    ask(path, "member", "sparse[3][1]", [(start + 40, start + 48)])
    ask(path, "member", "sparse[3]", [(start + 32, end)], coarse=True)


def databases(directory):
    path = directory / "trees.sqlite"
    database = sqlite3.connect(path)
    database.execute("CREATE TABLE trees (id INTEGER PRIMARY KEY, name TEXT, note TEXT)")
    rows = [(number * 5, f"tree {number}.", None) for number in range(3000)]
    database.executemany("INSERT INTO trees VALUES (?, ?, ?)", rows)
    database.execute("CREATE TABLE by_name (name TEXT PRIMARY KEY, note BLOB)")
    database.execute("INSERT INTO by_name VALUES ('ash', x'00fe01fd02fc')")
    database.commit()
    database.close()
    ask(path, "member", "trees[14995].name", [once(path, b"tree 2999.")])
    ask(path, "member", "trees[7500].name", [once(path, b"tree 1500.")])
    ask(path, "member", "by_name.ash.note", [once(path, bytes.fromhex("00fe01fd02fc"))])


def documents(directory):
    path = directory / "letter.docx"
    letter = docx.Document()
    for text in ["The first one", "The second one", "The last one"]:
        letter.add_paragraph(text)
    letter.save(path)
    ask(path, "member", "paragraphs[1]", [member(path, "word/document.xml")], coarse=True)
    plain = directory / "stored.docx"
    stored(path, plain)
    text = b"<w:r><w:t>The second one</w:t></w:r>"
    ask(plain, "member", "paragraphs[1]", [once(plain, text)])


def differing(old, new):
    """The first and last bytes that differ."""
    old, new = Path(old).read_bytes(), Path(new).read_bytes()
    assert len(old) == len(new)
    places = [at for at, pair in enumerate(zip(old, new, strict=True)) if pair[0] != pair[1]]
    return places[0], places[-1] + 1


def inner_parts(directory):
    """Parts that must have all bytes that differ between two files, and not those of others."""
    inner = []

    def compared(suffix, name, other, write):
        files = [directory / f"{side}{suffix}" for side in ("one", "two")]
        for path, value in zip(files, (1.5, 2.5), strict=True):
            rows = [float(number) for number in range(1000)]
            rows[777] = value
            write(pyarrow.table({"text": [f"{number:04}" for number in range(1000)], "x": rows}), path)
        start, end = differing(*files)
        inner.append({"file": str(files[0]), "name": name, "other": other, "inner": [start, end]})

    def parquet(table, path):
        pyarrow.parquet.write_table(
            table,
            path,
            compression="none",
            use_dictionary=False,
            write_statistics=False,
            write_page_index=True,
            data_page_size=512,
            write_batch_size=64,
            store_schema=False,
        )

    compared(".parquet", "x[777]", "x[10]", parquet)
    compared(".feather", "x[777]", "text[777]", lambda table, path: pyarrow.feather.write_feather(table, path, "uncompressed"))
    return inner


def parts():
    directory = Path("parts")
    directory.mkdir()
    for make in [text_parts, workbooks, spreadsheet, columns, datasets, databases, documents, archives]:
        make(directory)
    Path("parts.json").write_text(json.dumps({"questions": QUESTIONS, "inner": inner_parts(directory)}))
