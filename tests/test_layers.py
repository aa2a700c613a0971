"""A module imports only from rows above its own."""

import ast
from pathlib import Path

import pytest

import semigrad

LAYERS = [
    {"errors"},
    {"names", "reading", "settings"},
    {"core"},
    {"augment", "metagrad", "models"},
    {"methods", "data"},
    {"run"},
    {"folder"},
    {"training"},
    {"classifier", "fitting", "estimator"},
    {"doctor", "labeling", "embedding", "serving"},
    {"theory"},
    {"experiments"},
    {"cli.options"},
    {"cli.words"},
    {"report"},
    {"cli"},
]
ROOT = Path(semigrad.__file__).parent
FILES = sorted(ROOT.rglob("*.py"))


def module_of(path: Path) -> str:
    return room_of(".".join(path.relative_to(ROOT).with_suffix("").parts))


def room_of(module: str) -> str:
    """The row's entry that a module of ours belongs to: itself where it has one, else its room."""
    return module if any(module in layer for layer in LAYERS) else module.split(".")[0]


def imported(path: Path) -> set[str]:
    """The rooms of ours that a file imports from, also inside functions."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        names = []
        if isinstance(node, ast.ImportFrom) and node.module:
            names = [node.module]
            if node.module == "semigrad":
                names = [f"semigrad.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        found |= {room_of(name.removeprefix("semigrad.")) for name in names if name.startswith("semigrad.")}
    return found


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_imports_go_upwards(path):
    module = module_of(path)
    if module in ("__init__", "__main__"):
        return
    (row,) = [number for number, layer in enumerate(LAYERS) if module in layer]
    allowed = set().union(*LAYERS[:row], {module})
    assert imported(path) <= allowed


def test_every_module_has_a_row():
    assert {module_of(path) for path in FILES} - {"__init__", "__main__"} == set().union(*LAYERS)


def test_methods_do_not_import_one_another():
    for path in (ROOT / "methods").glob("*.py"):
        if path.name != "__init__.py":
            assert "methods" not in imported(path)


def test_no_shell_is_started():
    """What one system's shell understands, another's does not."""
    for path in FILES:
        text = path.read_text("utf-8")
        calls = [ast.unparse(node.func) for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Call)]
        assert not {"os.system", "os.popen", "subprocess.getoutput"} & set(calls), path
        assert "shell=" not in text, path
