#!/usr/bin/env python3
"""Slice reads of one float32 volume (300x512x512): brickmap beside python-blosc2, in one run.

    python benches/slices.py [--threads 1,2] [--rounds 3] [--codec planes] [--directory DIR]

Needs numpy and blosc2. Both stores have the same chunk and block shapes, codec (bytes of equal place together, zstd), level
(1) and number of threads, and allocate the result of every read anew. `--codec balanced` (or fast, small) is what
brickmap chooses by itself. The programs take turns; a figure is the median of the rounds' medians.
Prints milliseconds, and how many times faster brickmap is: with its block cache off, and as it is by default.
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

TASKS = {'full': np.s_[:], 'box200x400x400': np.s_[50:250, 51:451, 57:457], 'box128': np.s_[101:229, 101:229, 101:229],
         'box32': np.s_[133:165, 133:165, 133:165], 'box10': np.s_[101:111, 101:111, 101:111],
         'plane_z': np.s_[150, :, :], 'plane_x': np.s_[:, :, 200], 'line_z': np.s_[:, 200, 200],
         'one': np.s_[150, 200, 200]}
CHUNKS, BLOCKS = (64, 256, 256), (32, 32, 64)
ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def volume():
    z, y, x = np.ogrid[0:300, 0:512, 0:512]
    a = (np.sin(z / 20.) + np.cos(y / 30.) * np.sin(x / 25.)).astype('f4')
    return a + np.random.default_rng(0).standard_normal(a.shape, dtype='f4') * np.float32(.01)


def median(work, seconds):
    work()
    times, start = [], time.perf_counter()
    while len(times) < 3 or (time.perf_counter() - start < seconds and len(times) < 100_000):
        once = time.perf_counter()
        work()
        times.append(time.perf_counter() - once)
    return statistics.median(times) * 1e3


def blosc2_round(a, directory, threads, seconds):
    blosc2.set_nthreads(threads)
    path = os.path.join(directory, 'slices.b2nd')
    cparams = blosc2.CParams(codec=blosc2.Codec.ZSTD, clevel=1, nthreads=threads)
    write = []
    for _ in range(3):
        if os.path.exists(path):
            os.remove(path)
        start = time.perf_counter()
        blosc2.asarray(a, urlpath=path, mode='w', cparams=cparams, chunks=CHUNKS, blocks=BLOCKS)
        write.append(time.perf_counter() - start)
    stored = blosc2.open(path, mode='r', mmap_mode='r', dparams=blosc2.DParams(nthreads=threads))
    for task in TASKS.values():
        np.testing.assert_array_equal(np.asarray(stored[task]), a[task])
    report = {name: median(lambda task=task: stored[task], seconds) for name, task in TASKS.items()}
    return dict(report, write=statistics.median(write) * 1e3, bytes=os.path.getsize(path))


def brickmap_round(program, npy, directory, threads, seconds, codec):
    command = [program, npy, directory, '--threads', str(threads), '--seconds', str(seconds),
               '--codec', codec]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split('\n')[0])
    parser.add_argument('--threads', default='1,2')
    parser.add_argument('--rounds', type=int, default=3)
    parser.add_argument('--seconds', type=float, default=0.7)
    parser.add_argument('--codec', default='planes')
    parser.add_argument('--directory', default=None)
    options = parser.parse_args()
    subprocess.run(['cargo', 'build', '--release', '-q', '-p', 'brickmap-benches', '--bin', 'slices'], check=True, cwd=ROOT)
    target = os.environ.get('CARGO_TARGET_DIR', os.path.join(ROOT, 'target'))
    program = os.path.join(target, 'release', 'slices')
    with tempfile.TemporaryDirectory(dir=options.directory) as directory:
        a, npy = volume(), os.path.join(directory, 'volume.npy')
        np.save(npy, a)
        for threads in map(int, options.threads.split(',')):
            theirs, ours = [], []
            for _ in range(options.rounds):
                theirs.append(blosc2_round(a, directory, threads, options.seconds))
                ours.append(brickmap_round(program, npy, directory, threads, options.seconds, options.codec))
            middle = lambda rows, *keys: statistics.median(row[keys[0]] if len(keys) == 1 else row[keys[0]][keys[1]] for row in rows)
            print(f'\nthreads {threads}, {options.codec}: ms, blosc2 {blosc2.__version__} | brickmap, cache off | default cache')
            ratios = {'uncached': [], 'default': []}
            for task in TASKS:
                b = middle(theirs, task)
                row = f'{task:16}{b:10.3f} |'
                for kind in ratios:
                    m = middle(ours, kind, task)
                    ratios[kind].append(b / m)
                    row += f'{m:10.4f} ms {b / m:8.2f}x |'
                print(row)
            means = [statistics.geometric_mean(ratios[kind]) for kind in ratios]
            print(f'{"geometric mean":16}{"":10} |{"":13} {means[0]:8.2f}x |{"":13} {means[1]:8.2f}x')
            write, wrote = middle(theirs, 'write'), middle(ours, 'write')
            print(f'write {write:.0f} ms (not synced) | {wrote:.0f} ms (synced) {write / wrote:.2f}x; '
                  f'{middle(theirs, "bytes") / 1e6:.1f} MB | {middle(ours, "bytes") / 1e6:.1f} MB')


if __name__ == '__main__':
    main()
