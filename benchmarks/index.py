"""What opening a set of a million pictures takes: seconds and memory, with an index of names that lead nowhere.

    python -m benchmarks.index [--images 1300000] [--classes 1000]

One fresh process opens the index, another opens it, splits the data and draws the first batches of a run. Seconds are
those of the processor. Memory is what a process holds for itself (`RssAnon`) beyond what it held before; what is mapped
from a file is shared by all processes and given back when memory is short, and stands beside it."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from semigrad.data import index

LONG_AGO = 10**9
BATCH = 256


def prepare(folder: Path, place: Path, images: int, classes: int) -> None:
    """Class folders without pictures, and shards that say otherwise."""
    shards = []
    for number in range(classes):
        name = f"n{number:08d}"
        member = folder / name
        member.mkdir(parents=True)
        os.utime(member, (LONG_AGO, LONG_AGO))
        count = images * (number + 1) // classes - images * number // classes
        names = np.array([f"{name}/{name}_{picture:08d}.JPEG".encode() for picture in range(count)])
        times = np.array([LONG_AGO * 10**9], np.int64)
        shards.append(index.Shard(names, np.full(count, 110_000, np.int64), np.array([os.fsencode(member)]), times))
    classes_of = [member.name for member in index.subfolders(folder)]
    index.keep(index.place_of(folder, place), index.assemble(folder, classes_of, shards), shards)


def memory() -> dict[str, float]:
    """MB that this process holds for itself, and that it has mapped from files."""
    lines = Path("/proc/self/status").read_text().splitlines()
    held = {line.split(":")[0]: int(line.split()[1]) / 1024 for line in lines if line.startswith("Rss")}
    return {"own": held["RssAnon"], "mapped": held["RssFile"]}


def observe(task: str, folder: Path, place: Path) -> dict[str, float]:
    """One task, in this process."""
    from semigrad.data.dataset import Dataset
    from semigrad.data.imagenet import Files
    from semigrad.data.split import DataSpec, make_split
    from semigrad.data.stream import places

    before, started = memory(), time.process_time()
    found = index.index_of(folder, place)
    labels = np.repeat(np.arange(len(found.classes)), found.counts)
    if task == "batches":
        files = Files(str(folder), found.names, 224, sizes=found.sizes)
        ones = (1.0,) * 3
        dataset = Dataset("index", found.classes, files, labels, None, None, ones, ones, found.stamp)
        split = make_split(dataset, DataSpec.parse("imagenet@10%"), 0)
        for step in range(10):
            for position in split.unlabeled[places(0, "unlabeled", len(split.unlabeled), BATCH, step)]:
                files.path(int(position))
    seconds, after = time.process_time() - started, memory()
    return {"seconds": seconds, **{name: after[name] - before[name] for name in before}, "images": len(found)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--images", type=int, default=1_300_000)
    parser.add_argument("--classes", type=int, default=1000)
    parser.add_argument("--task", choices=["open", "batches"], help=argparse.SUPPRESS)
    parser.add_argument("--at", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.task:
        print(json.dumps(observe(options.task, options.at / "train", options.at / "root")))
        return
    with tempfile.TemporaryDirectory() as temporary:
        at = Path(temporary)
        prepare(at / "train", at / "root", options.images, options.classes)
        size = sum(file.stat().st_size for file in (at / "root").rglob("*.npy")) / 2**20
        print(f"{options.images:,} pictures of {options.classes:,} classes; the index has {size:.0f} MB on disk")
        for task, words in (("open", "opened"), ("batches", "opened, split, and the names of 10 batches")):
            command = [sys.executable, "-m", "benchmarks.index", "--task", task, "--at", str(at)]
            seen = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
            print(f"{words}: {seen['seconds']:.2f} s, {seen['own']:.0f} MB of its own, {seen['mapped']:.0f} MB mapped")


if __name__ == "__main__":
    main()
