"""The folder a run leaves: what was run, how it went, what came out.

run.json            the resolved run, versions, hashes of data and split
metrics.jsonl       one line every few steps
checkpoints/        training state
model.safetensors   the weights that answer; config.json: what else `evaluate` needs
result.json         final figures, written last
"""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from safetensors.torch import save as to_safetensors
from torch import nn

from semigrad.core import Task
from semigrad.data.columns import Columns
from semigrad.errors import InputError
from semigrad.folder.files import PARTIAL, read_json, write_json, write_whole
from semigrad.run import Run, from_layers

RUN, METRICS, RESULT = "run.json", "metrics.jsonl", "result.json"
MODEL, CONFIG = "model.safetensors", "config.json"
CHECKPOINTS, EVENTS = "checkpoints", "tensorboard"


def default_folder(run: Run) -> Path:
    """runs/NAME, a name for each different run."""
    data = "".join(c if c.isalnum() or c in "@%.-" else "-" for c in run.data)[-40:].strip("-")
    return Path("runs") / f"{data}_{run.method_name}_seed{run.seed}_{run.key}"


@dataclass
class RunFolder:
    path: Path

    def __getitem__(self, name: str) -> Path:
        return self.path / name

    @property
    def finished(self) -> bool:
        return self[RESULT].exists() and self[MODEL].exists()

    @property
    def date(self) -> datetime.datetime:
        """When the run was finished; where its result does not say, when that was written."""
        if isinstance(said := read_json(self[RESULT]).get("finished"), str):
            try:
                return datetime.datetime.fromisoformat(said)
            except ValueError as error:
                raise InputError(f"{self[RESULT]} is damaged: {said!r} is no date.") from error
        return datetime.datetime.fromtimestamp(self[RESULT].stat().st_mtime, datetime.UTC)

    def problems(self, run: Run, resume: bool) -> list[str]:
        """Why this run cannot go into this folder."""
        if not self[RUN].exists():
            if self.path.is_dir() and any(not entry.name.endswith(PARTIAL) for entry in self.path.iterdir()):
                return [f"{self.path} is not empty and holds no run of ours. Choose another place with --out."]
            return []
        there, here = self._description(), run.to_dict()
        if self.finished and isinstance(there, Mapping) and here == {**there, "steps": run.steps} != there:
            return [
                f"{self.path} holds this run, finished after {there['steps']} steps. Its learning rate was laid out "
                f"over those, so that it cannot be made longer: train on from its weights with --start-from "
                f"{self.path} and another --out."
            ]
        if differing := differences(there, here):
            return [
                f"{self.path} holds another run ({'; '.join(differing)}). Choose another place with --out, or give the "
                "same settings."
            ]
        if resume:
            return []
        state, advice = ("a finished run", "") if self.finished else ("an unfinished run", ", or go on with --resume")
        return [f"{self.path} holds {state}. Choose another place with --out{advice}."]

    def _description(self) -> Any:
        """The run as it was written, with the defaults of settings that did not exist then."""
        written: Any = read_json(self[RUN]).get("run")
        try:
            return from_layers(written["data"], [written]).to_dict()
        except (AttributeError, InputError, KeyError, TypeError):  # whatever it is, it is shown as it is
            return written

    def begin(self, run: Run, found: Mapping[str, Any]) -> list[str]:
        """Write down what is run with which `facts`, or compare with what was written; returns what a resuming user
        should know."""
        if not self[RUN].exists():
            write_json(self[RUN], {"run": run.to_dict(), "key": run.key, **found})
            return []
        written = read_json(self[RUN])
        for name, what in {"data": "data", "split": "split", "own_network": "network", "start": "start"}.items():
            here, there = found.get(name), written.get(name)
            if differing := list(differences(there, _as_far_as_known(here, there))):
                raise InputError(
                    f"{self.path} was begun with another {what} ({'; '.join(differing)}). Choose another place with "
                    "--out, or bring back what it was begun with."
                )
        changed = list(differences(written.get("environment"), found["environment"]))
        if not changed or self.finished:
            return []
        resumed = [*written.get("resumed_in", []), found["environment"]]
        write_json(self[RUN], {**written, "resumed_in": resumed})
        return [f"The run was begun elsewhere ({'; '.join(changed)}): results may differ in the last bits."]

    def write_model(
        self, net: nn.Module, model: Mapping[str, Any] | None, task: Task, columns: Columns | None = None
    ) -> None:
        """Weights and what is needed to use them; nothing of when, where or under which name they were made.
        `model` is None for a network that is not one of ours, `columns` says how rows of a table become features."""
        tensors = {name: value.detach().cpu().contiguous().clone() for name, value in net.state_dict().items()}
        write_whole(self[MODEL], to_safetensors(tensors))
        described = {} if columns is None else {"columns": columns.to_dict()}
        write_json(self[CONFIG], {"model": model, "classes": task.classes, "shape": task.shape, **described})


def _as_far_as_known(here: Any, there: Any) -> Any:
    """A table of facts without those that were not written down when the run was begun."""
    if isinstance(here, Mapping) and isinstance(there, Mapping):
        return {name: value for name, value in here.items() if name in there}
    return here


def differences(there: Any, here: Any, name: str = "") -> list[str]:
    """`name: value there, value here` for everything that differs, down to the fields of tables."""
    if isinstance(here, Mapping) and isinstance(there, dict | None) and (there or {}).get("name") == here.get("name"):
        there, below = there or {}, f"{name}." if name else ""
        return [line for key, value in here.items() for line in differences(there.get(key), value, f"{below}{key}")]
    if there == here:
        return []
    there, here = (value.get("name") if isinstance(value, Mapping) else value for value in (there, here))
    return [f"{name}: {there!r} there, {here!r} here" if name else f"{there!r} there, {here!r} here"]
