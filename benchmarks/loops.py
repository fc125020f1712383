"""Recordings of a training loop that waits in each step, and of the same loop repaired.

``python -m benchmarks.loops`` writes the two logs to ``benchmarks/results``, and
``notes/host_syncs.rst`` draws them. The loop is the page's: an update of a small network, whose
loss is read in each step, or kept on the device and read once.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp

import devicearray as da

_STEPS = 12
_SIZE = 400
_HERE = Path(__file__).parent


@jax.jit
def _update(weights: Any, batch: Any) -> Any:
    inputs, targets = batch

    def loss_of(weights: Any) -> Any:
        return jnp.mean((jnp.tanh(inputs @ weights) - targets) ** 2)

    loss, gradient = jax.value_and_grad(loss_of)(weights)
    return weights - gradient, loss


def _waiting(weights: Any, batches: list[Any]) -> Any:
    losses = []
    for batch in batches:
        weights, loss = _update(weights, batch)
        losses.append(float(loss))
    return weights, losses


def _ahead(weights: Any, batches: list[Any]) -> Any:
    losses = []
    for batch in batches:
        weights, loss = _update(weights, batch)
        losses.append(loss)
    return weights, jnp.stack(losses).tolist()


def _recording(loop: Callable[[Any, list[Any]], Any]) -> da.Log:
    keys = jax.random.split(jax.random.key(0), _STEPS)
    batches = [(jax.random.normal(key, (_SIZE, _SIZE)), jnp.zeros((_SIZE, _SIZE))) for key in keys]
    weights = jnp.ones((_SIZE, _SIZE)) / _SIZE
    jax.block_until_ready(loop(weights, batches))
    with da.record(profile=True) as log:
        jax.block_until_ready(loop(weights, batches))
    return log


def _write() -> None:
    for name, loop in {"loop_waiting": _waiting, "loop_ahead": _ahead}.items():
        path = _HERE / "results" / f"{name}.json"
        # Where this machine keeps the file is nobody's business.
        path.write_text(_recording(loop).to_json().replace(f"{_HERE}/", ""), encoding="utf-8")
        print(f"Written: {path.relative_to(Path.cwd(), walk_up=True)}")


if __name__ == "__main__":
    _write()
