"""What a run would take on a GPU that is not here: projected from published rates, never measured.

A step's multiplications are counted (`training.work`); a GPU's rate is the one that its maker prints, of which training
reaches a share. The shares are assumptions, and so is what a layer takes beside its arithmetic: small networks on
small images reach less, large ones more, so that a projection can be off by a factor of two or three either way."""

from __future__ import annotations

from dataclasses import dataclass

from semigrad.experiments.cost import estimate_seconds
from semigrad.experiments.speed import Speed
from semigrad.run import Run
from semigrad.settings.settings import GPUName

SHARE_OF_FLOAT32 = 0.5
SHARE_OF_TF32 = 0.25  # tensor cores wait for memory more
SECONDS_A_LAYER = 2e-5  # to start its work, in a pass


@dataclass(frozen=True)
class GPU:
    """One kind, by the figures of its maker: additions and multiplications a second, in units of 10^12."""

    title: str
    float32: float
    tf32: float | None = None  # dense, where it has TF32, in which torch computes convolutions then

    @property
    def multiplications(self) -> float:
        """A second that training is assumed to reach."""
        reached = SHARE_OF_FLOAT32 * self.float32 if self.tf32 is None else SHARE_OF_TF32 * self.tf32
        return reached * 1e12 / 2

    @property
    def words(self) -> str:
        """What a projection rests on."""
        peak, name = (self.float32, "float32") if self.tf32 is None else (self.tf32, "TF32")
        share = SHARE_OF_FLOAT32 if self.tf32 is None else SHARE_OF_TF32
        return (
            f"projected, not measured: one {self.title}, {share:.0%} of its published {peak:g} TFLOP/s ({name}), and "
            f"{1e6 * SECONDS_A_LAYER:.0f} µs for each layer"
        )


GPUS: dict[GPUName, GPU] = {
    "a100": GPU("NVIDIA A100", 19.5, 156),
    "h100": GPU("NVIDIA H100 SXM", 67, 495),
    "v100": GPU("NVIDIA V100 SXM2", 15.7),
    "t4": GPU("NVIDIA T4", 8.1),
    "rtx-3090": GPU("NVIDIA GeForce RTX 3090", 35.6, 35.6),
    "rtx-4090": GPU("NVIDIA GeForce RTX 4090", 82.6, 82.6),
}


def projected_seconds(run: Run, gpu: GPU) -> float:
    """Of a run's steps; not of reading data."""
    return estimate_seconds(run, Speed(gpu.multiplications, 0.0, SECONDS_A_LAYER))  # numbers are in the share
