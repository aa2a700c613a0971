"""The most memory that some work takes: what torch allocates for tensors on the processor, less what it frees.

Torch tells its profiler of every allocation, so the figure is exact and the same whatever else the machine does. What a
process holds (its resident set) says less: memory that was freed stays with the process and is used again, so that a
second step seems to take next to none. Not counted is what kernels take for themselves beside tensors, and not
subtracted what stood there before and is freed on the way, such as the last step's gradients."""

from __future__ import annotations

from collections.abc import Callable

from torch.autograd import DeviceType
from torch.profiler import ProfilerActivity, profile


def peak_of(work: Callable[[], object]) -> int:
    """Bytes above what there was before."""
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as profiler:
        work()
    events = profiler.profiler.kineto_results.events()  # type: ignore[union-attr]
    changes = [event for event in events if event.name() == "[memory]" and event.device_type() == DeviceType.CPU]
    held = most = 0
    for change in sorted(changes, key=lambda event: event.start_ns()):
        held += change.nbytes()
        most = max(most, held)
    return most
