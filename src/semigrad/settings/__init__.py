"""What a run is told, readable without torch: settings as values, what their fields may hold, recipes."""

from __future__ import annotations

from semigrad.settings.settings import Execution, Precision, Settings, length

__all__ = ["Execution", "Precision", "Settings", "length"]
