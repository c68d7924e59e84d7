#!/usr/bin/env python3
"""What h5py needs for the writes and reads of stream_bench, in the same words.

Usage: stream_h5py.py [MEGABYTES [FOLDER]].
"""
import os
import sys
import time

import h5py
import numpy


ARRAYS = 20  # as many parameters, of equal size


def report(what, size, work):
    work()
    seconds = []
    for _ in range(7):
        start = time.perf_counter()
        work()
        seconds.append(time.perf_counter() - start)
    seconds.sort()
    print(f"{what:<28} median {size / seconds[3] / 1e9:6.2f} GB/s   best {size / seconds[0] / 1e9:6.2f} GB/s")


def main():
    megabytes = int(sys.argv[1]) if len(sys.argv) > 1 else 500
    path = os.path.join(sys.argv[2] if len(sys.argv) > 2 else ".", "stream_h5py.h5")
    values = numpy.full(megabytes * 250_000 // ARRAYS * ARRAYS, 1.5, "f4")
    out = numpy.zeros_like(values)

    def write(sync=False):
        with h5py.File(path, "w", libver="latest") as file:
            for name, part in enumerate(numpy.split(values, ARRAYS)):
                file.create_dataset(f"parameters/{name}", data=part)
        if sync:
            descriptor = os.open(path, os.O_RDONLY)
            os.fsync(descriptor)
            os.close(descriptor)

    def read():
        with h5py.File(path, "r") as file:
            for name, part in enumerate(numpy.split(out, ARRAYS)):
                file[f"parameters/{name}"].read_direct(part)

    report("write, not synced", values.nbytes, write)
    report("write, synced", values.nbytes, lambda: write(sync=True))
    report("read into memory", values.nbytes, read)
    os.remove(path)


if __name__ == "__main__":
    main()
