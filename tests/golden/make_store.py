#!/usr/bin/env python3
"""Writes the HDF5 files in store/ with h5py: what other programs' files look like.

Usage: make_store.py [FOLDER]. Needs h5py and numpy. The test of the store room knows their numbers.
"""
import os
import sys

import h5py
import numpy

FOLDER = sys.argv[1] if len(sys.argv) > 1 else os.path.join(os.path.dirname(os.path.abspath(__file__)), "store")


def new(name, **options):
    return h5py.File(os.path.join(FOLDER, name), "w", **options)


def numbers(file):
    file["numbers"] = numpy.arange(6, dtype="<f4").reshape(2, 3) / 2


# The bounds choose the superblock. Version 1 needs a property that h5py lacks; the test makes one itself.
for superblock, libver in {0: "earliest", 2: ("v108", "v108"), 3: ("v110", "v110")}.items():
    with new(f"superblock{superblock}.h5", libver=libver) as file:
        numbers(file)
    with open(os.path.join(FOLDER, f"superblock{superblock}.h5"), "rb") as file:
        assert file.read(9)[8] == superblock

# As MATLAB writes them: a block of text first.
with new("userblock.h5", userblock_size=1024) as file:
    numbers(file)
with open(os.path.join(FOLDER, "userblock.h5"), "r+b") as file:
    file.write(b"MATLAB 7.3 MAT-file".ljust(512))

with new("foreign.h5") as file:
    file.create_dataset("chunked", data=numpy.arange(1000, dtype="<f8"), chunks=(100,), compression="gzip", shuffle=True)
    file["big_endian"] = numpy.arange(5, dtype=">i4") - 2
    file["bytes"] = numpy.array([-1, 0, 127], dtype="i1")
    file["half"] = numpy.array([0.5, -2], dtype="f2")
    file["doubles"] = numpy.array([0.1, numpy.inf, numpy.nan])
    file["large"] = numpy.array([1, 1e300])
    file["huge"] = numpy.array([2**40], dtype="<i8")
    file["scalar"] = numpy.uint16(7)
    file["nothing"] = numpy.zeros((0, 4), "f4")
    file["text"] = "h\u00e9llo"
    file["texts"] = numpy.array([b"a", b"bcd", b""])
    file["pair"] = numpy.zeros(2, [("a", "f4"), ("b", "i4")])
    file.create_dataset("unwritten", (4,), "f4", fillvalue=2.5)
    file.create_dataset("enormous", (1 << 50,), "f4", chunks=(1 << 20,))
    file["group/inner"] = numpy.arange(3, dtype="u1")
    file["hard"] = file["group"]
    file["soft"] = h5py.SoftLink("/scalar")
    file["dangling"] = h5py.SoftLink("/nowhere")
    file["external"] = h5py.ExternalLink("userblock.h5", "/numbers")
    file.create_dataset("outside", (2,), "f4", external=[("/etc/hostname", 0, 8)])
    layout = h5py.VirtualLayout((6,), "f4")
    layout[:] = h5py.VirtualSource("userblock.h5", "numbers", (6,))
    file.create_virtual_dataset("virtual", layout)
    file.attrs["integer"] = numpy.int32(-7)
    file.attrs["natural"] = numpy.uint64(2**64 - 1)
    file.attrs["number"] = numpy.float32(1.5)
    file.attrs["string"] = "variable"
    file.attrs["list"] = [1, 2, 3]
    file.attrs["empty"] = h5py.Empty("f4")
