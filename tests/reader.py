#!/usr/bin/env python3
"""A reader of brick files that was written from SPEC.md alone.

It proves that the specification suffices, and it is the second opinion in
the tests of the library: it shares no code with it. It is strict: whatever
the text states as a fact of the format is checked, not only what it calls a
"must". The section signs (§) below are those of SPEC.md.

    reader.py FILE            one JSON line for each group and array
    reader.py --account FILE  also: every byte has exactly one owner

It needs NumPy and zstandard; xxh3.py beside it has the checksum.
"""

import argparse
import ast
import collections
import hashlib
import itertools
import json
import math
import mmap
import struct
import sys
import uuid

import numpy as np
import zstandard

from xxh3 import xxh3_64

PAGE, RECORD, FIRST_EXTENT = 4096, 2048, 16384
SUPERBLOCK_MAGIC = b"\x89BRK\r\n\x1a\n"
ROOT_MAGIC = b"BRKROOT\0"
NULL, INDEX, CHUNK, CONSTANT, PIECES, RAW, TREE, BLOB, FREE = range(9)
TAGS = {INDEX: b"INDX", CHUNK: b"CHNK", PIECES: b"PIEC", RAW: b"RAWT",
        TREE: b"TREE", BLOB: b"BLOB",
        FREE: b"FREE"}
GROUP_RECORD, ARRAY_RECORD, RAGGED_RECORD = 1, 2, 3
MAX_DIMS, MAX_LENGTH, MAX_BLOCK = 32, 2**63 - 1, 2**24
MAX_BLOCKS, MAX_PATH, MAX_KEY, MAX_TREE_PAGE = 2**27, 1024, 1040, 65536
MAX_GENERATION, MAX_EXCESS = 2**61, 65536
RAW_SUM_BYTES = 65536
NUMBERS = {1: ("b", (1,)), 2: ("i", (1, 2, 4, 8)), 3: ("u", (1, 2, 4, 8)),
           4: ("f", (2, 4, 8)), 5: ("c", (8, 16))}
TIMES = {6: "M8", 7: "m8"}
UNITS = ("generic", "Y", "M", "W", "D", "h", "m", "s", "ms", "us", "ns",
         "ps", "fs", "as")


class Damage(Exception):
    """The file breaks the format."""


class Unsupported(Damage):
    """The file uses a part of the format that this reader does not know."""


def need(condition, text):
    """Raise Damage with the text unless the condition holds."""
    if not condition:
        raise Damage(text)


def unpack(layout, buffer, at):
    """struct.unpack_from of little-endian fields; too few bytes are damage."""
    try:
        return struct.unpack_from("<" + layout, buffer, at)
    except struct.error:
        raise Damage(f"{len(buffer)} bytes end before those due at {at}")


def size(lengths, itemsize, what):
    """The bytes of a box, which must not overflow even without its zeros."""
    total = math.prod(max(n, 1) for n in lengths) * itemsize
    need(total <= MAX_LENGTH, f"{what} of more than 2^63 - 1 bytes")
    return 0 if 0 in lengths else total


class Pointer(collections.namedtuple(
        "Pointer", "offset length birth checksum checked kind item")):
    """A pointer (§6); `item` is what one of kind 3 holds."""

    @classmethod
    def at(cls, buffer, at):
        fields = unpack("QQQQIB", buffer, at)
        if fields[5] == NULL:
            need(not any(fields), "null pointer that is not all zero")
        return cls(*fields, bytes(buffer[at:at + 16]))


Root = collections.namedtuple(
    "Root", "generation commit end catalog free flags boot")


def valid_copies(data, at, magic):
    """The valid copies of the record of a twin page (§3)."""
    copies = (data[at:at + RECORD], data[at + RECORD:at + PAGE])
    return [copy for copy in copies if copy[:8] == magic
            and unpack("Q", copy, 2040)[0] == xxh3_64(copy[:2040])]


def check_superblock(data):
    """§4: refuse what is not a brick file of a version known here."""
    copies = valid_copies(data, 0, SUPERBLOCK_MAGIC)
    if not copies and data[1:4] == SUPERBLOCK_MAGIC[1:4] \
            and data[:8] != SUPERBLOCK_MAGIC:
        raise Damage("damaged by a transfer in text mode")
    need(copies, "no valid superblock: not a brick file, or damaged")
    version, _, required = unpack("IIQ", copies[0], 8)
    if version != 1:
        raise Unsupported(f"format version {version}")
    if required:
        raise Unsupported(f"required feature bits {required:#x}")


def read_root(record):
    """§5: the fields of a root record, checked."""
    generation, commit, end = unpack("QQQ", record, 8)
    flags, boot, count = unpack("Q16sQ", record, 112)
    if flags & 0xFFFFFFFE:
        raise Unsupported(f"root flags {flags:#x}")
    need(generation <= MAX_GENERATION, f"generation {generation}")
    need(end % 64 == 0 and end >= FIRST_EXTENT, f"logical end {end}")
    need(count <= 118, f"{count} alive generations")
    alive = unpack("QQ" * count, record, 144)[::2]
    need(all(a < b for a, b in zip(alive, alive[1:]))
         and all(a < generation for a in alive), "order of alive generations")
    return Root(generation, commit, end, Pointer.at(record, 32),
                Pointer.at(record, 72), flags, boot)


def this_boot():
    """The boot id of this system, or None where it has none."""
    try:
        with open("/proc/sys/kernel/random/boot_id") as file:
            return uuid.UUID(file.read().strip()).bytes
    except (OSError, ValueError):
        return None


class File:
    """The bytes of a file as one root sees them.

    `reached` collects (offset, length, tag) of the extents that are followed;
    `since` hides from a walk what was born up to that generation.
    """

    def __init__(self, data, root, since=-1):
        need(root.end <= len(data),
             f"file of {len(data)} bytes, logical end {root.end}")
        self.data, self.root, self.since = data, root, since
        self.reached = []

    def hides(self, pointer):
        return pointer.birth <= self.since

    def extent(self, offset, length, tag):
        """The bytes of an extent that lies where one may lie (§2)."""
        need(offset % 64 == 0 and offset >= FIRST_EXTENT
             and offset + length <= self.root.end,
             f"{tag} extent of {length} bytes at {offset}")
        self.reached.append((offset, length, tag))
        return self.data[offset:offset + length]

    def follow(self, pointer, kind):
        """The frame that a pointer leads to, checked as §6 and §7 say."""
        if pointer.kind > FREE:
            raise Unsupported(f"pointer kind {pointer.kind}")
        need(pointer.kind == kind,
             f"pointer of kind {pointer.kind} in place of {kind}")
        tag, (offset, length) = TAGS[kind], pointer[:2]
        where = f"{tag.decode()} at {offset}"
        need(pointer.birth <= self.root.generation,
             f"{where}: born in generation {pointer.birth}")
        need(16 <= pointer.checked <= length
             and (kind == CHUNK or pointer.checked == length),
             f"{where}: {pointer.checked} of {length} bytes checked")
        frame = self.extent(offset, length, tag.decode())
        need(xxh3_64(frame[:pointer.checked]) == pointer.checksum,
             f"{where}: checksum")
        need(unpack("4sIQ", frame, 0) == (tag, pointer.checked, length),
             f"{where}: header differs from the pointer")
        return frame

    def tree(self, pointer, level=None, low=b"", high=None):
        """(key, value) of the leaves of a B+ tree in order (§8).

        The keys of the page are at least `low` and below `high`, which makes
        them ascend over the whole tree.
        """
        if pointer.kind == NULL and level is None or self.hides(pointer):
            return
        page = self.follow(pointer, TREE)
        where = f"tree page at {pointer.offset}"
        need(len(page) <= MAX_TREE_PAGE, f"{where}: {len(page)} bytes")
        here, count = unpack("B3xI", page, 16)
        need(here <= 32 and level in (None, here), f"{where}: level {here}")
        need(count, f"{where}: no cells")
        starts = unpack(f"{count}I", page, 24)
        need(starts[0] == 24 + 4 * count, f"{where}: first cell")
        keys, values = [], []
        for start, end in zip(starts, starts[1:] + (len(page),)):
            need(start + 2 <= end <= len(page), f"{where}: cell at {start}")
            key_end = start + 2 + unpack("H", page, start)[0]
            need(key_end <= min(end, start + 2 + MAX_KEY),
                 f"{where}: key of the cell at {start}")
            keys.append(bytes(page[start + 2:key_end]))
            values.append(page[key_end:end])
        need(all(a < b for a, b in zip(keys, keys[1:])) and low <= keys[0]
             and (high is None or keys[-1] < high), f"{where}: order of keys")
        if here == 0:
            for key, value in zip(keys, values):
                yield key, self.leaf_value(value, where)
            return
        need(keys[0] == low, f"{where}: key of the first cell")
        for key, value, bound in zip(keys, values, keys[1:] + [high]):
            need(len(value) == 40, f"{where}: cell size")
            yield from self.tree(Pointer.at(value, 0), here - 1, key, bound)

    def leaf_value(self, cell, where):
        """The value in what follows the key of a leaf's cell."""
        length = unpack("I", cell, 0)[0]
        if length < 1 << 31:
            need(len(cell) == 4 + length, f"{where}: cell size")
            return bytes(cell[4:])
        need(length == 1 << 31, f"{where}: length of a value")
        need(len(cell) == 44, f"{where}: cell size")
        return bytes(self.follow(Pointer.at(cell, 4), BLOB)[16:])


def read_dtype(buffer):
    """§10: the NumPy dtype of a dtype's bytes."""
    group, unit, itemsize, multiple, length = unpack("BBxxIII", buffer, 0)
    need(len(buffer) == 16 + length, "length of a dtype")
    if not 1 <= group <= 10:
        raise Unsupported(f"dtype class {group}")
    need(1 <= itemsize <= MAX_BLOCK, f"itemsize {itemsize}")
    need(group == 10 or not length, "description in a class without one")
    bad = f"dtype class {group}: itemsize {itemsize}, unit {unit}, " \
          f"multiple {multiple}"
    if group in TIMES:
        need(itemsize == 8 and unit < len(UNITS) and 1 <= multiple < 2**31
             and (unit or multiple == 1), bad)
        count = multiple if unit else ""
        return np.dtype(f"<{TIMES[group]}[{count}{UNITS[unit]}]")
    need(unit == 0 and multiple == 0, bad)
    if group in NUMBERS:
        code, sizes = NUMBERS[group]
        need(itemsize in sizes, bad)
        return np.dtype(f"<{code}{itemsize}")
    if group == 8:
        return np.dtype(f"S{itemsize}")
    if group == 9:
        need(itemsize % 4 == 0, bad)
        return np.dtype(f"<U{itemsize // 4}")
    return described(bytes(buffer[16:]), itemsize)


def described(text, itemsize):
    """The dtype of class 10: opaque, or with the fields of a description."""
    if not text:
        return np.dtype(f"V{itemsize}")
    try:
        fields = ast.literal_eval(text.decode("utf-8"))
        need(isinstance(fields, list), "description that is not a list")
        dtype = np.lib.format.descr_to_dtype(fields)
    except (ValueError, TypeError, SyntaxError, LookupError, OverflowError,
            MemoryError, RecursionError) as error:
        raise Damage(f"description {text[:80]!r}: {error}")
    need(not dtype.hasobject, "description with a field of objects")
    need(dtype.itemsize == itemsize, "itemsize of a description")
    return dtype


def unzstd(data, length):
    """One zstd frame that must give exactly so many bytes (§12.2)."""
    try:
        declared = zstandard.get_frame_parameters(data).content_size
        need(declared in (length, zstandard.CONTENTSIZE_UNKNOWN),
             f"zstd frame of {declared} bytes, {length} are due")
        out = zstandard.ZstdDecompressor().decompress(
            data, max_output_size=length, allow_extra_data=False)
    except zstandard.ZstdError as error:
        raise Damage(f"zstd: {error}")
    need(len(out) == length, f"zstd: {len(out)} bytes, {length} are due")
    return out


def unruns(pairs, length):
    """Stream kind 3: runs that must give exactly so many bytes."""
    need(len(pairs) % 2 == 0, "stream of runs of an odd length")
    pairs = np.frombuffer(pairs, np.uint8).reshape(-1, 2)
    lengths = pairs[:, 1].astype(np.int64) + 1
    need(lengths.sum() == length, f"runs of {lengths.sum()} bytes, "
         f"{length} are due")
    return np.repeat(pairs[:, 0], lengths).tobytes()


def unplanes(stored, word, count):
    """Coding 3: the bytes of `count` words, as an array of (count, word)."""
    out = np.empty((count, word), np.uint8)
    at = 4 * word
    for plane, entry in enumerate(unpack(f"{word}I", stored, 0)):
        kind, length = entry >> 30, entry & 0x3FFFFFFF
        if kind == 0:
            need(length < 256, "constant plane with bits set above its byte")
            out[:, plane] = length
            continue
        stream = stored[at:at + length]
        need(len(stream) == length, "stream that ends after its block")
        at += length
        if kind == 1:
            need(length == count, "length of a raw stream")
        elif kind == 2:
            stream = unzstd(stream, count)
        else:
            stream = unruns(stream, count)
        out[:, plane] = np.frombuffer(stream, np.uint8)
    need(at == len(stored), "bytes after the last stream")
    return out


def undelta(zigzags, stride):
    """Coding 4: the words whose differences these are."""
    differences = (zigzags >> 1) ^ np.negative(zigzags & 1)
    count = len(differences)
    stride = min(stride, count)
    rows = -(-count // stride)
    table = np.zeros(rows * stride, differences.dtype)
    table[:count] = differences
    table = table.reshape(rows, stride)
    return np.cumsum(table, axis=0, dtype=table.dtype).reshape(-1)[:count]


def decode(stored, coding, word, stride, count, itemsize):
    """The bytes of a block of items; of the one item if it is constant."""
    if coding in (0, 1):
        due = itemsize * (count if coding == 0 else 1)
        need(len(stored) == due, f"block of {len(stored)} bytes, not {due}")
        return stored
    if coding == 2:
        return unzstd(stored, count * itemsize)
    if coding not in (3, 4):
        raise Unsupported(f"block coding {coding}")
    need(word and itemsize % word == 0, f"word {word}, itemsize {itemsize}")
    if coding == 4:
        need(word in (1, 2, 4, 8) and stride, f"word {word}, stride {stride}")
    out = unplanes(stored, word, count * itemsize // word)
    if coding == 4:
        return undelta(out.reshape(-1).view(f"<u{word}"), stride)
    return out


# A run of items with a place in the array: the first corner, the shape, the
# birth of its extent, and a function that checks and decodes its items.
Block = collections.namedtuple("Block", "corner shape birth load")


class Array:
    """An array (§9): its description at once, its items with read()."""

    kind = "array"

    def __init__(self, file, record):
        self.file = file
        kind, dims, layout, bits = unpack("BBBB", record, 0)
        need(kind == ARRAY_RECORD, f"record kind {kind} for an array")
        if layout > 1:
            raise Unsupported(f"layout {layout}")
        need(dims <= MAX_DIMS, f"{dims} dimensions")
        need(bits <= 64, f"{bits} key bits")
        dtype_length, self.stored, self.present = unpack("IQQ", record, 12)
        self.index = Pointer.at(record, 32)
        lengths = unpack(f"{3 * dims}Q", record, 72)
        self.shape = lengths[:dims]
        self.chunks = lengths[dims:2 * dims]
        self.blocks = lengths[2 * dims:]
        at = 72 + 24 * dims
        self.key_dims = unpack(f"{bits}B", record, at)
        at += bits
        need(at + dtype_length <= len(record), "array record: length")
        self.dtype = read_dtype(record[at:at + dtype_length])
        self.fill_bytes = record[at + dtype_length:]
        need(len(self.fill_bytes) == self.dtype.itemsize,
             "array record: length")
        # Items move as opaque bytes, so that no bit of them can change.
        self.item = np.dtype(f"V{self.dtype.itemsize}")
        self.fill = np.frombuffer(self.fill_bytes, self.dtype).reshape(())
        self.raw = layout == 1
        self.check_shapes()

    def check_shapes(self):
        itemsize = self.dtype.itemsize
        need(max(self.shape + self.chunks + self.blocks, default=0)
             <= MAX_LENGTH, "length of a dimension")
        need(all(self.chunks) and all(
            1 <= b <= c for b, c in zip(self.blocks, self.chunks)),
            "chunk or block shape")
        self.nbytes = size(self.shape, itemsize, "array")
        size(self.chunks, itemsize, "chunk")
        self.grid = tuple(-(-s // c) for s, c in zip(self.shape, self.chunks))
        if self.raw:
            need(self.blocks == self.chunks, "raw layout: block shape")
            need(all(g <= 1 for g in self.grid[1:]), "raw layout: chunk shape")
        else:
            need(size(self.blocks, itemsize, "block") <= MAX_BLOCK,
                 "block of more than 2^24 bytes")
        need(all(k < len(self.shape) for k in self.key_dims), "key bits")
        need(all(g <= 1 << self.key_dims.count(k)
                 for k, g in enumerate(self.grid)), "too few key bits")

    def entries(self, pointer, level, prefix):
        """(key, pointer) of the chunks below an index page (§11)."""
        if level < 0:
            yield prefix, pointer
            return
        if self.file.hides(pointer):
            return
        page = self.file.follow(pointer, INDEX)
        here, found, bitmap = unpack("B7xQQ", page, 16)
        where = f"index page at {pointer.offset}"
        need((here, found) == (level, prefix), f"{where}: level or prefix")
        need(bitmap and len(page) == 40 + 40 * bitmap.bit_count(),
             f"{where}: bitmap or length")
        slots = (j for j in range(64) if bitmap >> j & 1)
        for at, j in zip(range(40, len(page), 40), slots):
            yield from self.entries(
                Pointer.at(page, at), level - 1, prefix << 6 | j)

    def chunk_pointers(self):
        """(first corner, shape inside the array, pointer) of all chunks."""
        if self.index.kind == NULL:
            return
        levels = -(-len(self.key_dims) // 6)
        for key, pointer in self.entries(self.index, levels - 1, 0):
            need(key >> len(self.key_dims) == 0, f"chunk key {key}")
            at, used = [0] * len(self.shape), [0] * len(self.shape)
            for bit, k in enumerate(self.key_dims):
                at[k] |= (key >> bit & 1) << used[k]
                used[k] += 1
            need(all(a < g for a, g in zip(at, self.grid)),
                 f"chunk {at} outside the grid")
            corner = tuple(a * c for a, c in zip(at, self.chunks))
            yield corner, tuple(
                min(c, s - o) for c, s, o in zip(
                    self.chunks, self.shape, corner)), pointer

    def chunk_blocks(self, corner, inside, pointer):
        """The blocks of a chunk (§12)."""
        if pointer.kind == CONSTANT and not self.raw:
            need(self.item.itemsize <= 16 and inside == self.chunks
                 and not any(pointer.item[self.item.itemsize:]),
                 f"constant chunk at {corner}")
            item = pointer.item[:self.item.itemsize]
            yield Block(corner, inside, -1,
                        lambda: np.frombuffer(item, self.item))
        elif self.file.hides(pointer):
            return
        elif self.raw:
            yield self.raw_block(corner, inside, pointer)
        elif pointer.kind == PIECES:
            yield from self.piece_blocks(corner, inside, pointer)
        else:
            yield from self.frame_blocks(corner, inside, pointer)

    def piece_blocks(self, corner, inside, pointer):
        """The blocks of the pieces of a chunk (§12.4)."""
        page = self.file.follow(pointer, PIECES)
        count, rows = unpack("I4xQ", page, 16)
        where = f"pieces at {pointer.offset}"
        need(count and len(page) == 32 + 48 * count, f"{where}: length")
        need(inside and rows <= inside[0], f"{where}: rows")
        starts = [unpack("Q", page, 32 + 48 * i)[0] for i in range(count)]
        ends = starts[1:] + [rows]
        need(starts[0] == 0 and all(a < b for a, b in zip(starts, ends)),
             f"{where}: order of rows")
        for i, (start, end) in enumerate(zip(starts, ends)):
            piece = Pointer.at(page, 40 + 48 * i)
            if not self.file.hides(piece):
                yield from self.frame_blocks(
                    (corner[0] + start,) + corner[1:],
                    (end - start,) + inside[1:], piece, end - start)

    def valid_shape(self, frame, at, inside, where):
        valid = unpack(f"{len(self.shape)}Q", frame, at)
        need(all(1 <= v <= i for v, i in zip(valid, inside)),
             f"{where}: valid shape {valid}")
        return valid

    def frame_blocks(self, corner, inside, pointer, rows=None):
        """The blocks of a chunk frame (§12.1), of `rows` rows if given."""
        frame = self.file.follow(pointer, CHUNK)
        where = f"chunk frame at {pointer.offset}"
        dims, word, stride, count = unpack("BBxIQ", frame, 17)
        need(dims == len(self.shape), f"{where}: dimensions")
        valid = self.valid_shape(frame, 32, inside, where)
        need(rows in (None, *valid[:1]), f"{where}: rows of a piece")
        counts = [-(-v // b) for v, b in zip(valid, self.blocks)]
        need(count == math.prod(counts) and count <= MAX_BLOCKS,
             f"{where}: number of blocks")
        base = 32 + 8 * dims + 16 * count
        need(pointer.checked == base, f"{where}: checked")
        table = np.frombuffer(frame[32 + 8 * dims:base], "<u8")
        ends = table[::2] & np.uint64(2**56 - 1)
        need((ends[1:] >= ends[:-1]).all()
             and base + int(ends[-1]) == len(frame), f"{where}: ends")
        codings = (table[::2] >> 56).tolist()
        ends = (ends + np.uint64(base)).tolist()
        sums = table[1::2].tolist()
        indices = itertools.product(*map(range, counts))
        for index, begin, end, coding, checksum in zip(
                indices, [base] + ends, ends, codings, sums):
            first = [i * b for i, b in zip(index, self.blocks)]
            shape = tuple(min(b, v - f) for b, v, f in zip(
                self.blocks, valid, first))

            need(end - begin <= math.prod(shape) * self.item.itemsize
                 + MAX_EXCESS, f"{where}: stored bytes of a block")

            def load(stored=frame[begin:end], coding=coding,
                     checksum=checksum, count=math.prod(shape)):
                need(xxh3_64(stored) == checksum, f"{where}: block checksum")
                return np.frombuffer(decode(
                    stored, coding, word, stride, count, self.item.itemsize),
                    self.item)
            yield Block(tuple(c + f for c, f in zip(corner, first)), shape,
                        pointer.birth, load)

    def raw_block(self, corner, inside, pointer):
        """The payload of a raw table as one block (§12.3)."""
        table = self.file.follow(pointer, RAW)
        where = f"raw table at {pointer.offset}"
        dims, offset, length = unpack("B7xQQ", table, 16)
        need(dims == len(self.shape), f"{where}: dimensions")
        valid = self.valid_shape(table, 40, inside, where)
        need(length == math.prod(valid) * self.item.itemsize,
             f"{where}: length of the payload")
        count = -(-length // RAW_SUM_BYTES)
        need(len(table) == 40 + 8 * dims + 8 * count, f"{where}: length")
        payload = self.file.extent(offset, length, "payload")
        sums = unpack(f"{count}Q", table, 40 + 8 * dims)

        def load():
            for at, checksum in zip(range(0, length, RAW_SUM_BYTES), sums):
                need(xxh3_64(payload[at:at + RAW_SUM_BYTES]) == checksum,
                     f"payload at {offset}: checksum of the bytes at {at}")
            return np.frombuffer(payload, self.item)
        return Block(corner, valid, pointer.birth, load)

    def all_blocks(self):
        for chunk in self.chunk_pointers():
            yield from self.chunk_blocks(*chunk)

    def read(self):
        """The whole array."""
        out = np.empty(self.shape, self.item)
        out[...] = np.frombuffer(self.fill_bytes, self.item).reshape(())
        for block in self.all_blocks():
            items = block.load()
            # One item for many is a constant, which is spread.
            shape = block.shape if len(items) > 1 else (1,) * len(self.shape)
            out[tuple(slice(c, c + n) for c, n in zip(
                block.corner, block.shape))] = items.reshape(shape)
        return out.view(self.dtype)

    def walk(self):
        """Follow every pointer, and check the two totals of the record."""
        before, present = len(self.file.reached), 0
        for chunk in self.chunk_pointers():
            present += 1
            for _ in self.chunk_blocks(*chunk):
                pass
        stored = sum(length for _, length, tag in self.file.reached[before:]
                     if tag in ("CHNK", "RAWT", "payload"))
        need((stored, present) == (self.stored, self.present),
             f"{stored} stored bytes in {present} chunks, not {self.stored} "
             f"in {self.present} as the record says")

    def check_items(self):
        """Check all that a walk shows down to the items."""
        for block in self.all_blocks():
            block.load()

    def describe(self):
        return self.dtype.str if self.dtype.names is None \
            else str(self.dtype.descr)

    def digest(self):
        """SHA-256 of the bytes in C order."""
        return hashlib.sha256(
            self.read().reshape(-1).view(np.uint8)).hexdigest()


class Ragged:
    """A ragged array or an array of strings (§9)."""

    kind = "ragged"

    def __init__(self, file, record):
        element, dims = unpack("BB", record, 1)
        if element > 1:
            raise Unsupported(f"ragged element {element}")
        need(dims <= MAX_DIMS, f"{dims} dimensions")
        self.strings = element == 0
        self.shape = unpack(f"{dims}Q", record, 8)
        need(max(self.shape, default=0) <= MAX_LENGTH, "length of a dimension")
        size(self.shape, 8, "offsets")
        at, parts = 8 + 8 * dims, []
        for _ in range(2):
            length = unpack("I", record, at)[0]
            need(at + 4 + length <= len(record), "ragged record: length")
            parts.append(Array(file, record[at + 4:at + 4 + length]))
            at += 4 + length
        need(at == len(record), "ragged record: length")
        self.offsets, self.values = parts
        need(self.offsets.dtype == np.dtype("<i8")
             and self.offsets.shape == (math.prod(self.shape) + 1,),
             "offsets of a ragged array")
        need(len(self.values.shape) == 1, "values of a ragged array")
        need(not self.strings or self.values.dtype == np.dtype("u1"),
             "strings that are not made of u8")
        self.dtype, self.fill = self.values.dtype, self.values.fill
        self.chunks, self.blocks = self.values.chunks, self.values.blocks

    def read(self):
        """The items in C order: a list of str, or one of arrays."""
        offsets, values = self.offsets.read(), self.values.read()
        need(offsets[0] >= 0 and offsets[-1] <= len(values)
             and (offsets[:-1] <= offsets[1:]).all(),
             "offsets that descend or reach outside the values")
        bounds = offsets.tolist()
        if not self.strings:
            return [values[a:b] for a, b in zip(bounds, bounds[1:])]
        text = values.tobytes()
        try:
            return [text[a:b].decode() for a, b in zip(bounds, bounds[1:])]
        except UnicodeDecodeError as error:
            raise Damage(f"string that is not UTF-8: {error}")

    def walk(self):
        self.offsets.walk()
        self.values.walk()

    def check_items(self):
        self.offsets.check_items()
        self.values.check_items()

    def describe(self):
        return "string" if self.strings else self.values.describe()

    def digest(self):
        """SHA-256 of each item's length and bytes."""
        digest = hashlib.sha256()
        for item in self.read():
            data = item.encode() if self.strings else item.view(np.uint8)
            digest.update(struct.pack("<Q", len(data if self.strings
                                                else item)) + bytes(data))
        return digest.hexdigest()


class Group:
    kind = "group"

    def __init__(self, _file=None, record=b"\x01"):
        need(len(record) == 1, "group record: length")


KINDS = {GROUP_RECORD: Group, ARRAY_RECORD: Array, RAGGED_RECORD: Ragged}


def parse(file, record):
    """What a catalog record describes."""
    need(record, "empty catalog record")
    if record[0] not in KINDS:
        raise Unsupported(f"record kind {record[0]}")
    return KINDS[record[0]](file, record)


def read_catalog(file):
    """§9: ({path: object, or why there is none}, {path: attributes})."""
    objects, attributes = {"": Group()}, {}
    for key, value in file.tree(file.root.catalog):
        path, ends_with_zero = key, key.endswith(b"\0")
        if ends_with_zero:
            path = key[:-1]
        try:
            name = path.decode("utf-8")
        except UnicodeDecodeError:
            raise Damage(f"path {path!r} is not UTF-8")
        need(len(path) <= MAX_PATH and "\0" not in name and (
            not name or not {"", ".", ".."} & set(name.split("/"))),
            f"path {name!r}")
        if ends_with_zero:
            attributes[name] = value
            continue
        try:
            objects[name] = parse(file, value)
        except Damage as why:
            objects[name] = why
        need(name or isinstance(objects[name], Group),
             "the root is not a group")
    return objects, attributes


class Store:
    """A brick file, given by its path or as bytes."""

    def __init__(self, source):
        if not isinstance(source, (bytes, bytearray, memoryview)):
            with open(source, "rb") as file:
                need(file.seek(0, 2) >= FIRST_EXTENT, "file without roots")
                source = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        data = memoryview(source)
        need(len(data) >= FIRST_EXTENT, "file without roots")
        check_superblock(data)
        self.file = File(data, self.choose_root(data))
        self.generation = self.file.root.generation
        self.objects, self.attributes = read_catalog(self.file)
        for name in (*self.objects, *self.attributes):
            need(name in self.objects, f"attributes of {name!r} alone")
            if name:
                parent = self.objects.get(name.rpartition("/")[0])
                need(isinstance(parent, Group), f"{name!r} is in no group")

    @staticmethod
    def choose_root(data):
        """The root that counts (§5)."""
        roots = []
        for page in (1, 2, 3):
            copies = valid_copies(data, page * PAGE, ROOT_MAGIC)
            need(copies, f"no valid copy in root page {page - 1}")
            roots.append(read_root(
                max(copies, key=lambda c: unpack("Q", c, 8))))
        # The sort is stable: of equal generations a synced one, and of these the lowest page, is first.
        roots.sort(key=lambda root: (root.generation, not root.flags & 1), reverse=True)
        newest = roots[0]
        if not newest.flags & 1 or newest.boot == this_boot():
            return newest
        synced = next((r for r in roots if not r.flags & 1), None)
        try:
            since = synced.generation if synced else -1
            check_everything(File(data, newest, since))
            return newest
        except Damage:
            if synced is None:
                raise
            return synced

    def names(self):
        """{path: "group", "array", "ragged", "unsupported" or "damaged"}."""
        return {name: found.kind if not isinstance(found, Damage)
                else "unsupported" if isinstance(found, Unsupported)
                else "damaged" for name, found in self.objects.items()}

    def attrs(self, path):
        """The attributes of a group or array, a dict."""
        if path not in self.attributes:
            return {}

        def refuse(token):
            raise ValueError(f"{token} is not JSON")
        try:
            found = json.loads(self.attributes[path].decode("utf-8"),
                               parse_constant=refuse)
        except (ValueError, RecursionError) as error:
            raise Damage(f"attributes of {path!r}: {error}")
        need(isinstance(found, dict), f"attributes of {path!r}: no object")
        return found

    def array(self, path):
        """The Array or Ragged of this name."""
        found = self.objects[path]
        if isinstance(found, Damage):
            raise found
        if isinstance(found, Group):
            raise KeyError(f"{path!r} is a group")
        return found

    def account(self):
        """Check that every byte up to the logical end has one owner (§2).

        Returns {"reached": bytes, "free": bytes}, padding included.
        """
        file = File(self.file.data, self.file.root)
        extents = [(offset, length, "free extent")
                   for offset, length in walk_everything(file)]
        free = sum(length for _, length, _ in extents)
        at = FIRST_EXTENT
        for offset, length, tag in sorted(extents + file.reached):
            need(offset == at, f"{'gap' if offset > at else 'overlap'} "
                 f"between {at} and {offset}, before a {tag}")
            at = offset + -(-length // 64) * 64
            need(not any(file.data[offset + length:at]),
                 f"padding after {offset + length} is not zero")
        need(at == file.root.end, f"gap from {at} to the logical end")
        return {"reached": at - FIRST_EXTENT - free, "free": free}


def objects_of(file):
    """The arrays of a file as it is now; one that is not readable raises."""
    for found in read_catalog(file)[0].values():
        if isinstance(found, Damage):
            raise found
        if not isinstance(found, Group):
            yield found


def free_extents(file):
    """(offset, length) of what is free (§13), by offset."""
    said, pointer, budget = {}, file.root.free, file.root.end
    while pointer.kind != NULL and not file.hides(pointer):
        budget -= pointer.length
        need(budget >= 0, "lists of free space without end")
        frame = file.follow(pointer, FREE)
        where = f"list of free space at {pointer.offset}"
        pointer = Pointer.at(frame, 16)
        need(pointer.kind in (NULL, FREE), f"{where}: kind of the list before")
        count, = unpack("Q", frame, 56)
        need(count <= (len(frame) - 64) // 32, f"{where}: {count} entries")
        last = -1
        for at in range(64, 64 + 32 * count, 32):
            offset, length, birth, freed = unpack("4Q", frame, at)
            need(last < offset and offset % 64 == 0 and length % 64 == 0
                 and FIRST_EXTENT <= offset and offset + length <= file.root.end
                 and birth <= freed <= file.root.generation,
                 f"{where}: {length} bytes at {offset}")
            said.setdefault(offset, length)
            last = offset
    return [(offset, length) for offset, length in sorted(said.items())
            if length]


def walk_everything(file):
    """Follow all that a root reaches; returns the free extents."""
    for found in objects_of(file):
        found.walk()
    return free_extents(file)


def check_everything(file):
    """Check all that a file does not hide, down to the items."""
    for found in objects_of(file):
        found.check_items()
    free_extents(file)


def report(store, name, kind):
    """The line of the listing for one name."""
    line = {"name": name, "kind": kind, "dtype": None, "shape": None,
            "sha256": None, "attrs": store.attrs(name)}
    if kind != "group":
        array = store.array(name)
        line.update(dtype=array.describe(), shape=array.shape,
                    sha256=array.digest())
    return json.dumps(line)


def main():
    parser = argparse.ArgumentParser(description="List a brick file.")
    parser.add_argument("file")
    parser.add_argument("--account", action="store_true",
                        help="check that every byte has exactly one owner")
    options = parser.parse_args()
    status = 0
    try:
        store = Store(options.file)
        for name, kind in store.names().items():
            try:
                print(report(store, name, kind))
            except Damage as why:
                print(f"{name}: {why}", file=sys.stderr)
                status = 1
        if options.account:
            store.account()
    except (Damage, OSError, MemoryError) as why:
        print(f"{options.file}: {why}", file=sys.stderr)
        status = 1
    return status


if __name__ == "__main__":
    sys.exit(main())
