"""The independent reader (reader.py) reads a file that was assembled from SPEC.md, with what no writer makes, and finds
what is damaged in it.

The file is made by the example `forged_file`, which also says what must be in it.
"""

import json
import pathlib
import random
import subprocess
import sys

import numpy as np
import pytest

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
import reader  # noqa: E402


@pytest.fixture(scope="module")
def sample(tmp_path_factory):
    directory = tmp_path_factory.mktemp("forged")
    command = ["cargo", "run", "--quiet", "--package", "brickmap", "--example", "forged_file", "--", directory]
    subprocess.run(command, check=True, cwd=HERE.parent)
    return Sample(directory)


class Sample:
    """A file, and what must be in it."""

    def __init__(self, directory):
        self.path = directory / "forged.brick"
        self.clean = self.path.read_bytes()
        about = json.loads((directory / "forged.json").read_text())
        self.names, self.attributes = about["names"], about["attributes"]
        self.items = (directory / "forged.bin").read_bytes()

    def bytes_of(self, name):
        about = self.names[name]
        return self.items[about["offset"]:about["offset"] + about["len"]]


def bytes_read(array):
    """The items of an array, or the lengths and then the values of a ragged one, as the sample has them."""
    items = array.read()
    if array.kind == "array":
        return np.ascontiguousarray(items).reshape(-1).view(np.uint8).tobytes() if items.size else b""
    items = [item.encode() if isinstance(item, str) else item for item in items]
    lengths = np.array([len(item) for item in items], "<i8")
    return lengths.tobytes() + b"".join(bytes(item) if isinstance(item, bytes) else item.tobytes() for item in items)


def test_all_names_are_listed(sample):
    names = reader.Store(sample.path).names()
    assert {name: kind for name, kind in names.items() if name} == {
        name: about["kind"] for name, about in sample.names.items()}


def test_every_item_is_read_as_it_was_written(sample):
    store = reader.Store(sample.path)
    arrays = [name for name, about in sample.names.items() if about["kind"] != "group"]
    assert len(arrays) >= 12
    for name in arrays:
        array, about = store.array(name), sample.names[name]
        assert list(array.shape) == about["shape"], name
        assert bytes_read(array) == sample.bytes_of(name), name


def test_attributes_are_read_as_they_were_written(sample):
    store = reader.Store(sample.path)
    for name in ["", *sample.names]:
        assert store.attrs(name) == sample.attributes.get(name, {}), name


def test_every_byte_has_one_owner(sample):
    account = reader.Store(sample.path).account()
    assert account["reached"] > 0 and account["free"] > 0


def read_all(data, sample):
    """Reads everything in some bytes, and fails if something is not what was written."""
    store = reader.Store(data)
    store.account()
    for name in ["", *sample.names]:
        assert store.attrs(name) == sample.attributes.get(name, {})
        if name and sample.names[name]["kind"] != "group":
            assert bytes_read(store.array(name)) == sample.bytes_of(name)


def test_flipped_bits_are_detected(sample):
    clean = sample.clean
    read_all(clean, sample)
    free = [range(offset, offset + length) for offset, length in reader.free_extents(reader.Store(clean).file)]
    numbers = random.Random(1)
    for at in range(reader.FIRST_EXTENT, len(clean), 29):
        data = bytearray(clean)
        data[at] ^= 1 << numbers.randrange(8)
        if any(at in extent for extent in free):
            read_all(bytes(data), sample)
        else:
            with pytest.raises(reader.Damage):
                read_all(bytes(data), sample)


def test_a_flip_in_one_copy_of_a_page_is_harmless_and_in_both_it_is_detected(sample):
    clean = sample.clean
    for page in range(4):
        for at in range(0, reader.RECORD, 251):
            data = bytearray(clean)
            data[page * reader.PAGE + at] ^= 0x10
            assert reader.Store(bytes(data)).generation == reader.Store(clean).generation
            data[page * reader.PAGE + reader.RECORD + at] ^= 0x10
            with pytest.raises(reader.Damage):
                reader.Store(bytes(data))


def test_truncated_files_are_detected(sample):
    clean = sample.clean
    for length in [*range(0, len(clean), 509), len(clean) - 1]:
        with pytest.raises(reader.Damage):
            read_all(clean[:length], sample)


def test_the_command_lists_a_file_and_says_what_is_damaged(sample, tmp_path):
    command = [sys.executable, HERE / "reader.py", "--account"]
    lines = subprocess.run([*command, sample.path], check=True, capture_output=True, text=True).stdout.splitlines()
    listed = {json.loads(line)["name"] for line in lines}
    assert listed >= set(sample.names)
    data = bytearray(sample.path.read_bytes())
    data[reader.FIRST_EXTENT + 100] ^= 1
    damaged = tmp_path / "damaged.brick"
    damaged.write_bytes(data)
    run = subprocess.run([*command, damaged], capture_output=True, text=True)
    assert run.returncode == 1 and run.stderr
