"""The independent reader (reader.py, written from SPEC.md alone) reads whatever the writer writes.

The store is made by the example `every_feature`, which also says what must be in it.
"""
import json
import os
import pathlib
import subprocess
import sys

import numpy as np
import pytest

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
import reader  # noqa: E402


@pytest.fixture(scope='module')
def made(tmp_path_factory):
    """The directory with the store and what is expected of it."""
    directory = tmp_path_factory.mktemp('every')
    command = ['cargo', 'run', '--quiet', '--package', 'brickmap', '--example', 'every_feature', '--', str(directory)]
    subprocess.run(command, check=True, cwd=HERE.parent, env=dict(os.environ, RUSTFLAGS=os.environ.get('RUSTFLAGS', '')))
    return directory


def test_every_array_is_read_as_it_was_written(made):
    store = reader.Store(str(made / 'every.brick'))
    expected = json.loads((made / 'expected.json').read_text())
    assert len(expected) > 60
    for entry in expected:
        array = store.array(entry['path'])
        assert list(array.shape) == entry['shape'], entry['path']
        items = array.read()
        if 'strings' in entry:
            assert list(items) == entry['strings']
        elif 'runs' in entry:
            assert [list(map(int, run)) for run in items] == entry['runs']
        else:
            assert np.ascontiguousarray(items).tobytes() == (made / entry['file']).read_bytes(), entry['path']


def test_names_and_attributes(made):
    store = reader.Store(str(made / 'every.brick'))
    names = store.names()
    assert sum(path.startswith('groups/') for path in names) == 600
    assert store.attrs('') == {'title': 'every feature'}
    assert store.attrs('groups/7') == {'n': [1, None, -2.5]}
    assert len(store.attrs('dtypes/3')['text']) == 150_000
    assert store.attrs('empty group') == {}


def test_every_byte_is_accounted_for(made):
    reader.Store(str(made / 'every.brick')).account()


def read_all(data):
    """Everything in the store of these bytes, or what is wrong with it."""
    store = reader.Store(data)
    for path, kind in sorted(store.names().items()):
        store.attrs(path)
        if kind in ('array', 'ragged'):
            store.array(path).read()


def test_flipped_bits_are_found(made):
    """Negative control: the reader does look at what it reads."""
    whole = bytearray((made / 'every.brick').read_bytes())
    used = np.flatnonzero(np.frombuffer(whole, 'u1')[16384:]) + 16384
    found = 0
    for at in used[:: max(1, len(used) // 60)]:
        whole[at] ^= 4
        try:
            read_all(bytes(whole))
        except reader.Damage:
            found += 1
        whole[at] ^= 4
    assert found > 40  # the others are in free space
