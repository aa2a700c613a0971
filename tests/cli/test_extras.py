"""What is not needed by all is an extra: without any of them a model is trained, shown and asked."""

import subprocess
import sys

import pytest

EXTRAS = (
    "datasets", "huggingface_hub", "onnx", "onnxruntime", "onnxscript", "pandas", "pyarrow", "ray", "starlette",
    "tensorboard", "timm", "torchvision", "uvicorn",
)  # fmt: skip
WITHOUT = f"""
import sys
sys.modules.update(dict.fromkeys({EXTRAS}))  # as if they were not installed
from semigrad.cli import main
sys.exit(main(sys.argv[1:]))
"""


def without_extras(*words):
    return subprocess.run(
        [sys.executable, "-c", WITHOUT, *map(str, words)], capture_output=True, text=True, timeout=300
    )


@pytest.mark.slow
def test_training_the_page_and_answers_need_none_and_what_does_says_how_to_get_it(tmp_path):
    rows = [f"{number},{number % 2}" for number in range(40)]
    (tmp_path / "rows.csv").write_text("\n".join(["size,label", *rows]))
    run, data = tmp_path / "run", f"csv:{tmp_path / 'rows.csv'}@20"
    done = without_extras("train", data, "--steps", "3", "--threads", "1", "--out", run)
    assert done.returncode == 0, done.stderr
    assert (run / "report.html").is_file()
    done = without_extras("predict", run, tmp_path / "rows.csv")
    assert done.returncode == 0, done.stderr
    assert len(done.stdout.splitlines()) == 41
    for extra, *words in (
        ("onnx", "export", run, "--format", "onnx"),
        ("serve", "serve", run),
    ):
        done = without_extras(*words)
        assert done.returncode == 2
        assert f"semigrad[{extra}]" in done.stderr
