#!/usr/bin/env python3
"""Changes to arrays of a float32 volume (300x512x512) on disk: brickmap beside python-blosc2, in one run.

    python benches/changes.py [--threads 1,2] [--rounds 5] [--only first,boxes,append] [--directory DIR]

Needs numpy and blosc2. Writes the volume from memory, overwrites it, writes boxes of 10x10x10 items into an array of
(50, 512, 512), and appends 20,000 rows of 4096 items, a chunk each. `same` are chunks and blocks of one shape with byte
shuffle and zstd at level 1 in both; `own` is what each chooses by itself, at zstd level 1. The programs take turns, with
fresh files in each round; a figure is the median of the rounds. Blosc2 never waits for the disk, so brickmap's
`Durability::Deferred` is what to compare; `Full` stands beside it. Prints how many times faster brickmap is, and the bytes that
each gave to the system (`wchar` of /proc/self/io).
"""
import argparse
import json
import os
import statistics
import subprocess
import tempfile
import time

import blosc2
import numpy as np

from slices import BLOCKS, CHUNKS, ROOT, volume

PLANES, BOX, FURTHER, ROW = 50, 10, 100, 4096
KINDS = {'same': dict(chunks=CHUNKS, blocks=BLOCKS), 'own': {}}


def wrote():
    with open('/proc/self/io') as lines:
        return next(int(line.split()[1]) for line in lines if line.startswith('wchar:'))


def settle(path):
    """Lets the disk have what was written, so that it is not in the way of what is timed next."""
    with open(path, 'rb') as file:
        os.fsync(file.fileno())


class Timed:
    """The milliseconds of what is done within, and the bytes given to the system."""

    def __enter__(self):
        self.before, self.start = wrote(), time.perf_counter()
        return self

    def __exit__(self, *_):
        self.ms, self.bytes = (time.perf_counter() - self.start) * 1e3, wrote() - self.before


class Blosc2:
    def __init__(self, directory, threads):
        blosc2.set_nthreads(threads)
        self.threads, self.path = threads, os.path.join(directory, 'changes.b2nd')
        self.cparams = blosc2.CParams(codec=blosc2.Codec.ZSTD, clevel=1, nthreads=threads, typesize=4)

    def create(self, a, shapes):
        self.remove()
        return blosc2.asarray(a, urlpath=self.path, mode='w', cparams=self.cparams, **shapes)

    def open(self):
        # The parameters of compression are those in the file; given again, they would be without its block size.
        return blosc2.open(self.path, mode='a', dparams=blosc2.DParams(nthreads=self.threads))

    def remove(self):
        if os.path.exists(self.path):
            os.remove(self.path)

    def size(self):
        return os.path.getsize(self.path)

    def volume(self, a, other, kind):
        with Timed() as first:
            stored = self.create(a, KINDS[kind])
        report = dict(first=first.ms, first_wrote=first.bytes, stored=self.size(), file=self.size(), over=[], wrote=[],
                      chunks=stored.chunks, blocks=stored.blocks)
        del stored
        settle(self.path)
        for items in (other, a, other):
            stored = self.open()
            with Timed() as over:
                stored[...] = items
            settle(self.path)
            report['over'].append(over.ms)
            report['wrote'].append(over.bytes)
            assert np.array_equal(stored[:], items)
            del stored
        report['file_after'] = self.size()
        self.remove()
        return report

    def boxes(self, a, kind, places):
        expected = a[:PLANES].copy()
        stored = self.create(expected, KINDS.get(kind, {}))
        report = dict(times=[], stored=self.size(), chunks=stored.chunks, blocks=stored.blocks)
        settle(self.path)
        spent = 0
        for z, y, x in places:
            at = np.s_[z:z + BOX, y:y + BOX, x:x + BOX]
            items = np.ascontiguousarray(a[z + FURTHER:z + FURTHER + BOX, at[1], at[2]])
            expected[at] = items
            with Timed() as write:
                stored[at] = items
            report['times'].append(write.ms)
            spent += write.bytes
        assert np.array_equal(stored[:], expected)
        report.update(wrote=spent / len(places), file=self.size())
        self.remove()
        return report

    def append(self, rows, count, method, tenths=10):
        """Milliseconds of each tenth of `count` appends of a row, a chunk each."""
        self.remove()
        if method == 'resize':
            stored = blosc2.empty((0, ROW), dtype='f4', chunks=(1, ROW), blocks=(1, ROW), urlpath=self.path, mode='w',
                                  cparams=self.cparams)

            def one(n):
                stored.resize((n + 1, ROW))
                stored[n] = rows[n % len(rows)]
        else:
            stored = blosc2.SChunk(chunksize=ROW * 4, urlpath=self.path, mode='w', cparams=self.cparams)

            def one(n):
                stored.append_data(rows[n % len(rows)])
        times, before = [], wrote()
        for tenth in range(tenths):
            start = time.perf_counter()
            for n in range(count * tenth // 10, count * (tenth + 1) // 10):
                one(n)
            times.append((time.perf_counter() - start) * 1e3)
        report = dict(times=times, wrote=wrote() - before, file=self.size(), stored=self.size())
        for n in {0, count * tenths // 20, count * tenths // 10 - 1}:
            row = stored[n] if method == 'resize' else np.frombuffer(stored.decompress_chunk(n), dtype='f4')
            assert np.array_equal(row, rows[n % len(rows)])
        self.remove()
        return report


def brickmap(program, task, npy, directory, threads, durability, kind, **more):
    shapes = KINDS[kind] if kind in ('same', 'own') else kind
    options = dict(threads=threads, durability=durability, codec='planes' if shapes else 'balanced', **more)
    options.update({name: ','.join(map(str, shape)) for name, shape in shapes.items()})
    command = [program, task, npy, directory] + [text for name, value in options.items() for text in (f'--{name}', str(value))]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def middle(rows, get):
    return statistics.median(get(row) for row in rows)


def mb(size):
    return f'{size / 1e6:.1f}'


HEAD = f'{"":22}{"blosc2":>11} |{"deferred":>11}{"":9} |{"full":>11}{"":9} | MB written: blosc2 | brickmap'


def row(name, get, get_bytes, sets):
    theirs, deferred, full = (middle(rows, get) for rows in sets)
    b, m = (middle(rows, get_bytes) for rows in sets[:2])
    print(f'{name:22}{theirs:11.3f} |{deferred:11.3f} {theirs / deferred:7.2f}x |{full:11.3f} {theirs / full:7.2f}x | '
          f'{mb(b):>18} | {mb(m):>8}', flush=True)


def volumes(program, a, npy, directory, threads, rounds):
    other = -a
    for kind in KINDS:
        sets = [], [], []
        for _ in range(rounds):
            sets[0].append(Blosc2(directory, threads).volume(a, other, kind))
            for rows, durability in zip(sets[1:], ('deferred', 'full')):
                rows.append(brickmap(program, 'volume', npy, directory, threads, durability, kind))
        row(f'first write, {kind}', lambda r: r['first'], lambda r: r['first_wrote'], sets)
        row(f'overwrite, {kind}', lambda r: r['over'][0], lambda r: r['wrote'][0], sets)
        row(f'third time, {kind}', lambda r: r['over'][2], lambda r: r['wrote'][2], sets)
        for name, rows in (('blosc2', sets[0]), ('brickmap', sets[1])):
            r = rows[0]
            print(f'    {name}: chunks {tuple(r["chunks"])}, blocks {tuple(r["blocks"])}; stored {mb(r["stored"])} MB; overwriting wrote '
                  f'{r["wrote"][0] / r["stored"]:.2f} of that, third time {r["wrote"][2] / r["stored"]:.2f}; '
                  f'file then {r["file_after"] / r["stored"]:.2f}')


def boxes(program, a, npy, directory, threads, rounds, count):
    random = np.random.default_rng(1)
    places = [tuple(int(random.integers(0, n - BOX + 1)) for n in (PLANES,) + a.shape[1:]) for _ in range(count)]
    text = ';'.join(','.join(map(str, place)) for place in places)
    for kind in ('same', 'own', "blosc2's"):
        sets = [], [], []
        for _ in range(rounds):
            sets[0].append(Blosc2(directory, threads).boxes(a, kind, places))
            shapes = kind if kind in KINDS else {name: sets[0][0][name] for name in ('chunks', 'blocks')}
            for rows, durability in zip(sets[1:], ('deferred', 'full')):
                rows.append(brickmap(program, 'boxes', npy, directory, threads, durability, shapes, places=text))
        row(f'10^3 items, {kind}', lambda r: statistics.median(r['times']), lambda r: r['wrote'], sets)
        for name, rows in (('blosc2', sets[0]), ('brickmap', sets[1])):
            r = rows[0]
            print(f'    {name}: chunks {tuple(r["chunks"])}, blocks {tuple(r["blocks"])}; stored {mb(r["stored"])} MB, '
                  f'file after {count} writes {mb(r["file"])}')


def appends(program, a, npy, directory, rounds, count):
    rows = a.reshape(-1, ROW)
    shapes = dict(chunks=(1, ROW), blocks=(1, ROW))
    # Of Blosc2's two ways the faster one is taken: the other is given up after a tenth.
    trial = {method: Blosc2(directory, 1).append(rows, count, method, 1)['times'][0] for method in ('resize', 'append_data')}
    method = min(trial, key=trial.get)
    sets = {f'blosc2 {method}': [], 'deferred, one commit': [], 'deferred, each': [], 'full, one commit': [], 'full, each': []}
    for _ in range(rounds):
        for name, reports in sets.items():
            if name.startswith('blosc2'):
                reports.append(Blosc2(directory, 1).append(rows, count, method))
            else:
                durability, commit = name.split(', ')
                reports.append(brickmap(program, 'append', npy, directory, 1, durability, shapes, count=count,
                                        commit='each' if commit == 'each' else 'end'))
    print(f'\n{count} appends of (1, {ROW}) items, a chunk each, one thread: us an append, by tenths')
    print('blosc2, first tenth: ' + ', '.join(f'{way} {ms * 1e4 / count:.0f} us' for way, ms in trial.items()))
    print(f'{"":21}' + ''.join(f'{tenth:7}' for tenth in range(1, 11)) + f'{"all, ms":>9}{"ratio":>8}  bytes each   file MB')
    whole = {name: middle(reports, lambda r: sum(r['times'])) for name, reports in sets.items()}
    for name, reports in sets.items():
        tenths = [middle(reports, lambda r: r['times'][n]) * 1e4 / count for n in range(10)]
        print(f'{name:21}' + ''.join(f'{us:7.1f}' for us in tenths) + f'{whole[name]:9.0f}{whole[f"blosc2 {method}"] / whole[name]:7.2f}x'
              f'{middle(reports, lambda r: r["wrote"]) / count:12.0f}{middle(reports, lambda r: r["file"]) / 1e6:10.1f}')


def main():
    parser = argparse.ArgumentParser(description=__doc__.split('\n')[0])
    parser.add_argument('--threads', default='1,2')
    parser.add_argument('--rounds', type=int, default=5)
    parser.add_argument('--append-rounds', type=int, default=1)
    parser.add_argument('--only', default='first,boxes,append')
    parser.add_argument('--boxes', type=int, default=20)
    parser.add_argument('--appends', type=int, default=20_000)
    parser.add_argument('--directory', default=None)
    options = parser.parse_args()
    subprocess.run(['cargo', 'build', '--release', '-q', '-p', 'brickmap-benches', '--bin', 'changes'], check=True, cwd=ROOT)
    program = os.path.join(os.environ.get('CARGO_TARGET_DIR', os.path.join(ROOT, 'target')), 'release', 'changes')
    only = options.only.split(',')
    with tempfile.TemporaryDirectory(dir=options.directory) as directory:
        a, npy = volume(), os.path.join(directory, 'volume.npy')
        np.save(npy, a)
        settle(npy)
        for threads in map(int, options.threads.split(',')):
            if 'first' in only or 'boxes' in only:
                print(f'\nthreads {threads}: ms, blosc2 {blosc2.__version__} | brickmap\n{HEAD}')
            if 'first' in only:
                volumes(program, a, npy, directory, threads, options.rounds)
            if 'boxes' in only:
                boxes(program, a, npy, directory, threads, options.rounds, options.boxes)
        if 'append' in only:
            appends(program, a, npy, directory, options.append_rounds, options.appends)


if __name__ == '__main__':
    main()
