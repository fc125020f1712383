"""Speed, as ratios: ours against JAX's, measured side by side in one process.

``python -m benchmarks`` runs all of it, prints a table, and writes ``benchmarks/results/*.json``
with the machine, the versions, the date and every sample. Tests never assert a time; what this
site says of speed it reads from those files.
"""
