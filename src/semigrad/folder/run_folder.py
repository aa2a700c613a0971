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
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from safetensors.torch import save as to_safetensors
from torch import nn

from semigrad.core import Task
from semigrad.errors import InputError
from semigrad.folder.figures import checksum, lines_of, result_problem, sha256
from semigrad.folder.files import PARTIAL, read_json, write_json, write_whole
from semigrad.reading import read_file
from semigrad.run import Run, from_layers

RUN, METRICS, RESULT = "run.json", "metrics.jsonl", "result.json"
MODEL, CONFIG = "model.safetensors", "config.json"
FIT = "fit.json"  # what `semigrad fit` compared
CHECKPOINTS, EVENTS = "checkpoints", "tensorboard"

UNSAID = {"processes": 1}
"""What was so of every run before it was written down."""


def default_folder(run: Run) -> Path:
    """runs/NAME, a name for each different run."""
    data = "".join(c if c.isalnum() or c in "@%.-" else "-" for c in run.data)[-40:].strip("-")
    return Path("runs") / f"{data}_{run.method_name}_seed{run.seed}_{run.key}"


@dataclass
class RunFolder:
    path: Path
    begun: dict[str, Any] = field(default_factory=dict, repr=False, compare=False)  # what `begin` found or wrote

    def __getitem__(self, name: str) -> Path:
        return self.path / name

    @property
    def finished(self) -> bool:
        return self[RESULT].exists() and self[MODEL].exists()

    @property
    def date(self) -> datetime.datetime:
        """When the run was finished; where its result does not say, when that was written."""
        if isinstance(said := self.result().get("finished"), str):
            try:
                return datetime.datetime.fromisoformat(said)
            except ValueError as error:
                raise InputError(f"{self[RESULT]} is damaged: {said!r} is no date.") from error
        return datetime.datetime.fromtimestamp(self[RESULT].stat().st_mtime, datetime.UTC)

    @property
    def threads(self) -> int | None:
        """How many the run was begun with, where it was begun: going on with as many gives the same bits."""
        return threads_of(read_json(self[RUN])) if self[RUN].exists() else None

    def problems(self, run: Run, resume: bool) -> list[str]:
        """Why this run cannot go into this folder."""
        if not self[RUN].exists():
            return self.strangers()
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
        if damage := key_problem(self[RUN], run):
            return [damage]
        if resume:
            return []
        state, advice = ("a finished run", "take it as it is") if self.finished else ("an unfinished run", "go on")
        return [f"{self.path} holds {state}. Choose another place with --out, or {advice} with --resume."]

    def strangers(self) -> list[str]:
        """A sentence where something stands in the place of a run that is none, whichever is to go there."""
        if self[RUN].exists() or not self.path.exists():
            return []
        if not self.path.is_dir():
            return [f"{self.path} is a file, and a run is a folder. Choose another place with --out."]
        if any(not entry.name.endswith(PARTIAL) for entry in self.path.iterdir()):
            return [f"{self.path} is not empty and holds no run of ours. Choose another place with --out."]
        return []

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
            self.begun = {"run": run.to_dict(), "key": run.key, **found}
            write_json(self[RUN], self.begun)
            return []
        self.begun = written = read_json(self[RUN])
        for name, what in {"data": "data", "split": "split", "own_network": "network", "start": "start"}.items():
            here, there = found.get(name), written.get(name)
            if differing := list(differences(there, _as_far_as_known(here, there))):
                raise InputError(
                    f"{self.path} was begun with another {what} ({'; '.join(differing)}). Choose another place with "
                    "--out, or bring back what it was begun with."
                )
        there = written.get("environment")
        there = {**UNSAID, **there} if isinstance(there, dict) else there
        changed = list(differences(there, found["environment"]))
        if not changed or self.finished:
            return []
        before = written.get("resumed_in")
        resumed = [*(before if isinstance(before, list) else []), found["environment"]]
        self.begun = {**written, "resumed_in": resumed}
        write_json(self[RUN], self.begun)
        return [f"The run was begun elsewhere ({'; '.join(changed)}): results may differ in the last bits."]

    def keep_description(self) -> None:
        """Write down again what is run where somebody took it away: without it, all the rest is of no use."""
        if self.begun and not self[RUN].exists():
            write_json(self[RUN], self.begun)

    def write_model(self, net: nn.Module, model: Mapping[str, Any] | None, task: Task, key: str, **more: Any) -> str:
        """Weights and what is needed to use them, and to know them again; nothing of when, where or under which name
        they were made. `model` is None for a network that is not one of ours; `more` stands in config.json too. Returns
        the hash of the weights."""
        tensors = {name: value.detach().cpu().contiguous().clone() for name, value in net.state_dict().items()}
        content = to_safetensors(tensors)
        described = {"model": model, "classes": task.classes, "shape": task.shape, **more, "key": key}
        write_whole(self[MODEL], content)
        self._write_config({**described, "sha256": sha256(content)})
        return sha256(content)

    def _write_config(self, config: Mapping[str, Any]) -> None:
        write_json(self[CONFIG], {**config, "checksum": checksum(config)})

    def config(self) -> dict[str, Any]:
        """The content of config.json; raises where it is not what was written: a changed letter in the name of a class
        would stand in every answer."""
        content = read_json(self[CONFIG])
        said = content.pop("checksum", None)
        if said not in (None, checksum(content)):
            raise InputError(
                f"{self[CONFIG]} is damaged: its checksum is another. Bring back what it said; if it was you who "
                "changed it, take the checksum out of it."
            )
        return content

    def set_temperature(self, temperature: float | None, held_out: int) -> None:
        """How sure the model may be by so many labels, where that was found out after it was written."""
        self._write_config({**self.config(), "temperature": temperature, "held_out": held_out})

    def weights(self) -> bytes:
        """The content of the model's file; raises where it is not what was written."""
        content, config = read_file(self[MODEL]), self.config()
        result = self.result() if self[RESULT].exists() else {}
        for file, said in ((CONFIG, config.get("sha256")), (RESULT, result.get("model"))):
            if said not in (None, sha256(content)):
                raise InputError(
                    f"{self[MODEL]} is damaged, or of another run: it is not the file whose hash is in {file}."
                )
        run = read_json(self[RUN]) if self[RUN].exists() else {}  # a model that was handed on comes without
        if (key := config.get("key")) not in (None, run.get("key", key)):
            raise InputError(f"{self[MODEL]} is of another run: {CONFIG} has the key {key!r}, and {RUN} another.")
        return content

    def write_result(self, result: Mapping[str, Any]) -> None:
        write_whole(self[RESULT], lines_of({**result, "checksum": checksum(result)}))

    def result(self) -> dict[str, Any]:
        """The content of result.json; raises where it is not what was written."""
        content = read_json(self[RESULT])
        said = content.pop("checksum", None)
        problem = "its checksum is another" if said not in (None, checksum(content)) else result_problem(content)
        if problem:
            raise InputError(
                f"{self[RESULT]} is damaged: {problem}. Take it away, and semigrad train --resume --out {self.path} "
                "writes it again from the last checkpoint."
            )
        return content


def threads_of(written: Mapping[str, Any]) -> int | None:
    """How many threads a run was begun with, by its run.json."""
    environment = written.get("environment")
    threads = environment.get("threads") if isinstance(environment, dict) else None
    return threads if type(threads) is int and threads > 0 else None


def key_problem(file: Path, run: Run) -> str | None:
    """A sentence where run.json says that its settings, those of this run, were others when it was written."""
    if (key := read_json(file).get("key", run.key)) == run.key:
        return None
    return (
        f"{file} is damaged: the settings in it are those of a run with the key {run.key}, and it was written with "
        f"the key {key!r}. Bring back what it said, or train anew elsewhere."
    )


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
