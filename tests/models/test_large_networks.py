"""The paper's networks take real steps of Algorithm 2 on real images: CIFAR-10 in memory, JPEGs through the stream."""

import dataclasses
import os
import re
import signal
import subprocess
import sys
import time

import pytest
import torch
from safetensors.torch import load_file

from semigrad.data import open_dataset
from semigrad.folder.metrics import read_metrics
from semigrad.run import configure
from semigrad.settings import Execution
from semigrad.training.loop import train
from semigrad.training.setup import set_up

pytestmark = [pytest.mark.data, pytest.mark.slow]


def steps_of_algorithm_2(data, model, dataset, out, **settings):
    """Two steps after one at rate 0; the network after them, the network before, and the lines of metrics.

    With the authors' projection and warm-up: before the running statistics have seen data, eval mode is far from train
    mode in a deep network, and unprojected labels leave the simplex by orders of magnitude."""
    rates = {"schedule": "constant", "lr": 0.05, "warmup": 1.5}
    run = configure(data, method="meta-gradient", model=model, steps=3, batch=4, **rates, **settings)
    before = set_up(run, "cpu", dataset).net.state_dict()
    train(run, out, dataset=dataset, execution=Execution(threads=1, log_every=1))
    return load_file(out / "model.safetensors"), before, read_metrics(out / "metrics.jsonl")


def assert_real_steps(after, before, lines):
    parameters = [name for name in before if not name.startswith("normalize") and "num_batches" not in name]
    still = [name for name in parameters if torch.equal(after[name], before[name])]
    assert not still
    assert len(lines) == 3
    assert all(line["mixed"] > 0 and line["consistency"] > 0 for line in lines)


@pytest.mark.parametrize("model", ["conv-large", "shake-shake-26", "wrn-28-2"])
def test_on_cifar10(model, real_data, tmp_path):
    dataset = open_dataset("cifar10", root=real_data)
    dataset = dataclasses.replace(dataset, test=None, test_labels=None)  # 10,000 images are too many for a test
    assert_real_steps(*steps_of_algorithm_2("cifar10@4000", model, dataset, tmp_path / "run"))


def test_resnet_18_on_streamed_jpegs(real_data, tmp_path):
    path = real_data / "tiny-imagenet-20"
    dataset = open_dataset("imagenet", path, image_size=64)
    dataset = dataclasses.replace(dataset, test=None, test_labels=None)
    assert dataset.train.streamed
    data = f"imagenet:{path}@10%"
    assert_real_steps(*steps_of_algorithm_2(data, "resnet-18", dataset, tmp_path / "run", image_size=64))


def test_a_signal_to_the_whole_group_saves_a_streamed_run(real_data, tmp_path):
    """As `timeout`, a batch system or a terminal send it: to the readers too."""
    words = f"train imagenet:{real_data / 'tiny-imagenet-20'}@10% --image-size 32 --model small-conv --batch 8"
    words += f" --steps 100000 --workers 2 --threads 1 --out {tmp_path / 'run'}"
    process = subprocess.Popen(
        [sys.executable, "-m", "semigrad", *words.split()], stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    while not (tmp_path / "run" / "metrics.jsonl").exists() and process.poll() is None:
        time.sleep(0.1)
    time.sleep(3)
    os.killpg(process.pid, signal.SIGTERM)
    _, told = process.communicate(timeout=120)
    assert process.returncode == 143, told
    assert "Traceback" not in told
    (step,) = re.findall(r"Stopped at step ([\d,]+)", told)
    newest = max((tmp_path / "run" / "checkpoints").glob("*.pt"))  # quick machines have an earlier one too
    assert int(newest.name.partition("-")[0]) == int(step.replace(",", ""))


def test_the_stream_resumes_bit_identically_with_any_number_of_workers(real_data, tmp_path):
    path = real_data / "tiny-imagenet-20"
    dataset = dataclasses.replace(open_dataset("imagenet", path, image_size=32), test=None, test_labels=None)
    settings = {"model": "small-conv", "image_size": 32, "batch": 8, "steps": 6}
    run = configure(f"imagenet:{path}@10%", **settings)
    for out, workers in (("a", 0), ("b", 1), ("c", 2)):
        train(run, tmp_path / out, dataset=dataset, execution=Execution(threads=1, workers=workers))
    bytes_of = [(tmp_path / out / "model.safetensors").read_bytes() for out in "abc"]
    assert bytes_of[0] == bytes_of[1] == bytes_of[2]
