"""On which releases of JAX the package holds what it says: tried, not claimed.

``python -m versions`` (``make versions``) asks pip for the newest three minor releases of JAX that
install here, makes an environment for each in ``.venv/jax-X.Y``, runs there the tests that depend
on JAX, and writes what came of them to ``versions/results.json`` and, as a table, into README.md.

Prior art: tox and nox, which run a list of environments that somebody keeps up to date and give an
exit status for each. Here the list is what pip answers today, and the answer is kept: a reader
wants to know which facts hold on the JAX that he has, not that a build was green. A matrix in CI
alone was refused for the same reason.
"""
