"""Algorithm 1 for f = softmax(Wx) in closed form, for many seeds at a time.

With S = diag(p) − ppᵀ the Jacobian of one example is S ⊗ xᵀ, so that

    ∇G = (2/N) Σ_k S_k (p_k − y_k) x_kᵀ,   J_i∇G = S_i ∇G x_i,   θ_{t+1} = θ_t − (4α²β/B²) Σ_i S_i S_i ∇G x_i x_iᵀ."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from semigrad.core import generator
from semigrad.theory.scene import Scene


def softmax(logits: np.ndarray) -> np.ndarray:
    """Over the second dimension of (seeds, classes, examples)."""
    scaled = np.exp(logits - logits.max(1, keepdims=True))
    normalized: np.ndarray = scaled / scaled.sum(1, keepdims=True)
    return normalized


def times_s(p: np.ndarray, a: np.ndarray) -> np.ndarray:
    """S a = p ∘ (a − pᵀa), column by column; both (seeds, classes, examples)."""
    product: np.ndarray = p * (a - (p * a).sum(1, keepdims=True))
    return product


def run_closed_form(
    weight: np.ndarray, scene: Scene, *, alpha_squared_beta: float, batch: int, steps: int, seeds: int
) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Yields W (seeds, classes, features), G (seeds,) and ‖∇G‖² (seeds,) before each of the steps.

    All seeds start at `weight` (classes, features); they differ in the uniform unlabeled batches they draw."""
    x, y, pool = scene.x.numpy(), scene.y.numpy().T, scene.pool.numpy()
    classes, features = weight.shape
    w = np.repeat(weight[None], seeds, axis=0)
    draw = generator("theorem 2", batch)
    for _ in range(steps):
        residual = softmax((w.reshape(-1, features) @ x.T).reshape(seeds, classes, -1))
        p = residual.copy()
        residual -= y
        g = (2 / len(x)) * (times_s(p, residual).reshape(seeds * classes, -1) @ x).reshape(w.shape)
        yield w, np.square(residual).sum((1, 2)) / len(x), np.square(g).sum((1, 2))
        u = pool[draw.integers(len(pool), size=(seeds, batch))]  # (seeds, batch, features)
        columns = u.transpose(0, 2, 1)
        q = softmax(w @ columns)
        w = w - (4 * alpha_squared_beta / batch**2) * (times_s(q, times_s(q, g @ columns)) @ u)
