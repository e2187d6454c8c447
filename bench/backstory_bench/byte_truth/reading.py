"""Reads what the byte engine writes: an independent reader of `docs/formats/bytes.md`.

In: the engine's directory. Out: for each byte of a file, the input bytes that it depends on. They
are a mask with one bit for each byte of the input files.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, field
from pathlib import Path

IMAGE, ENTITY, BLOCK, LIST, PAIR, WRITE, MOVE, POSSIBLE, COARSE, END, IMPLICIT, FUNCTION, CALLERS = range(1, 14)
NONE, COPY, SET = range(3)

Entity = tuple[int, int, int, int]


@dataclass
class Block:
    """Leaves that are consecutive bytes of an entity."""

    first: int
    count: int
    shift: int
    entity: Entity
    offset: int
    tick: int


@dataclass
class Write:
    """Bytes that went to an entity. `origin` is the image's set, or the moved bytes' place."""

    tick: int
    offset: int
    length: int
    image: Image | None
    runs: list[tuple[int, int, int]] = field(default_factory=list)
    moved_from: tuple[Entity, int] | None = None
    decided: list[tuple[int, int]] = field(default_factory=list)


@dataclass
class Image:
    """One file of the engine."""

    blocks: list[Block] = field(default_factory=list)
    nodes: dict[int, tuple[int, ...]] = field(default_factory=dict)
    masks: dict[int, int] = field(default_factory=dict)
    written: list[Write] = field(default_factory=list)


class Numbers:
    """Variable-length integers of a file."""

    def __init__(self, content: bytes) -> None:
        self.content = content
        self.at = 8

    def next(self) -> int:
        value = shift = 0
        while True:
            byte = self.content[self.at]
            self.at += 1
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value
            shift += 7

    def take(self, count: int) -> list[int]:
        return [self.next() for _ in range(count)]

    def string(self) -> bytes:
        length = self.next()
        self.at += length
        return self.content[self.at - length : self.at]


class Flow:
    """All images of a run."""

    def __init__(self, directory: Path, inputs: dict[Path, int]) -> None:
        self.writes: dict[Entity, list[Write]] = {}
        self.paths: dict[Entity, bytes] = {}
        self.possible: list[str] = []
        self.base: dict[bytes, tuple[int, int]] = {}
        used = 0
        for path, size in inputs.items():
            self.base[str(path).encode()] = (used, size)
            used += size
        for path in sorted(directory.glob("*.bytes")):
            self._read(path.read_bytes())
        for writes in self.writes.values():
            writes.sort(key=lambda w: w.tick)

    def _read(self, content: bytes) -> None:
        if content[:8] != b"BSBYTES1":
            raise ValueError("not a file of the byte engine")
        numbers, image, entities = Numbers(content), Image(), dict[int, Entity]()
        while numbers.at < len(content):
            tag = numbers.next()
            if tag == IMAGE:
                numbers.take(2)
                numbers.string()
            elif tag == ENTITY:
                number, kind, device, inode, generation, *_ = numbers.take(8)
                entities[number] = (kind, device, inode, generation)
                self.paths[entities[number]] = numbers.string()
            elif tag == BLOCK:
                first, count, shift, entity, offset, tick = numbers.take(6)
                block = Block(first, count, shift, entities[entity], offset, tick)
                at = bisect_right(image.blocks, first, key=lambda b: b.first)
                image.blocks.insert(at, block)
            elif tag == LIST:
                number, low, span, rest = numbers.take(4)
                image.nodes[number] = (LIST, low, low + span, rest)
            elif tag == PAIR:
                number, second, rest = numbers.take(3)
                image.nodes[number] = (PAIR, second, rest)
            elif tag == WRITE:
                self._read_write(numbers, entities, image)
            elif tag == MOVE:
                source, source_offset, target, offset, length, tick = numbers.take(6)
                moved = Write(tick, offset, length, None, [], (entities[source], source_offset))
                self.writes.setdefault(entities[target], []).append(moved)
            elif tag == POSSIBLE:
                numbers.next()
                self.possible.append(numbers.string().decode())
            elif tag in (COARSE, END):
                numbers.next()
            elif tag == FUNCTION:
                numbers.take(2)
                numbers.string()
                numbers.string()
            elif tag == CALLERS:
                numbers.take(numbers.next())
            elif tag == IMPLICIT:
                # It belongs to the WRITE before.
                image.written[-1].decided = [(numbers.next(), numbers.next()) for _ in range(numbers.next())]
            else:
                raise ValueError(f"unknown tag {tag} at {numbers.at}")

    def _read_write(self, numbers: Numbers, entities: dict[int, Entity], image: Image) -> None:
        entity, offset, length, tick, count = numbers.take(5)
        write = Write(tick, offset, length, image)
        for _ in range(count):
            head = numbers.next()
            kind = head & 3
            write.runs.append((head >> 3, kind, numbers.next() if kind != NONE else 0))
        image.written.append(write)
        self.writes.setdefault(entities[entity], []).append(write)

    def file_masks(self, path: Path, size: int) -> list[int]:
        """For each byte of the file, the mask of its input bytes, of all kinds."""
        last = 1 << 62
        stat = path.stat()
        # The kernel's own encoding of a device is that of st_dev.
        entity = (0, stat.st_dev, stat.st_ino, 0)
        return [self._byte(entity, offset, last) for offset in range(size)]

    def _writer(self, entity: Entity, offset: int, before: int) -> Write | None:
        writes = self.writes.get(entity, [])
        for write in reversed(writes[: bisect_right(writes, before - 1, key=lambda w: w.tick)]):
            if write.offset <= offset < write.offset + write.length:
                return write
        return None

    def _byte(self, entity: Entity, offset: int, before: int) -> int:
        write = self._writer(entity, offset, before)
        if write is None:
            base, size = self.base.get(self.paths.get(entity, b""), (0, 0))
            return 1 << base + offset if offset < size else 0
        inside = offset - write.offset
        if write.moved_from:
            source, source_offset = write.moved_from
            return self._byte(source, source_offset + inside, write.tick)
        assert write.image is not None
        return self._explicit(write, write.image, inside) | self._implicit(write, write.image, inside)

    def _explicit(self, write: Write, image: Image, inside: int) -> int:
        for length, kind, label in write.runs:
            if inside < length:
                if kind == NONE:
                    return 0
                return self._mask(image, label + inside if kind == COPY else label)
            inside -= length
        return 0

    def _implicit(self, write: Write, image: Image, inside: int) -> int:
        for length, label in write.decided:
            if inside < length:
                return self._mask(image, label) if label else 0
            inside -= length
        return 0

    def _mask(self, image: Image, label: int) -> int:
        """The mask of a set. Sets nest deeply, so that this does not recurse."""
        stack = [label]
        while stack:
            top = stack[-1]
            if top in image.masks:
                stack.pop()
                continue
            node = image.nodes.get(top)
            if node is None:
                image.masks[top] = self._leaves(image, top, top)
                continue
            children = [c for c in (node[3:] if node[0] == LIST else node[1:]) if c]
            missing = [c for c in children if c not in image.masks]
            if missing:
                stack += missing
                continue
            mask = self._leaves(image, node[1], node[2]) if node[0] == LIST else 0
            for child in children:
                mask |= image.masks[child]
            image.masks[top] = mask
        return image.masks[label]

    def _leaves(self, image: Image, low: int, high: int) -> int:
        mask = 0
        at = bisect_right(image.blocks, low, key=lambda b: b.first) - 1
        for block in image.blocks[at:]:
            if block.first > high:
                break
            for leaf in range(max(low, block.first), min(high, block.first + block.count - 1) + 1):
                start = block.offset + (leaf - block.first << block.shift)
                for offset in range(start, start + (1 << block.shift)):
                    mask |= self._byte(block.entity, offset, block.tick)
        return mask
