"""What the service has done so far, as Prometheus reads it."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

BOUNDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
"""Seconds."""


@dataclass
class Counts:
    """Requests by path and status, and how long predictions took."""

    requests: Counter[tuple[str, int]] = field(default_factory=Counter)
    answered: int = 0
    seconds: float = 0.0
    quick: Counter[float] = field(default_factory=Counter)  # how many took at most so long
    under_way: int = 0

    def took(self, seconds: float) -> None:
        self.answered += 1
        self.seconds += seconds
        self.quick.update(bound for bound in BOUNDS if seconds <= bound)

    def text(self) -> str:
        """In the text format of Prometheus."""
        lines = ["# HELP semigrad_requests_total Requests.", "# TYPE semigrad_requests_total counter"]
        lines += [
            f'semigrad_requests_total{{path="{path}",status="{status}"}} {count}'
            for (path, status), count in sorted(self.requests.items())
        ]
        name = "semigrad_prediction_seconds"
        lines += [f"# HELP {name} Time from a whole body to its answer.", f"# TYPE {name} histogram"]
        lines += [f'{name}_bucket{{le="{bound:g}"}} {self.quick[bound]}' for bound in BOUNDS]
        lines += [f'{name}_bucket{{le="+Inf"}} {self.answered}']
        lines += [f"{name}_sum {self.seconds:.6f}", f"{name}_count {self.answered}"]
        lines += ["# HELP semigrad_predictions_under_way Requests that are read, wait or are answered."]
        lines += ["# TYPE semigrad_predictions_under_way gauge", f"semigrad_predictions_under_way {self.under_way}"]
        return "\n".join(lines) + "\n"
