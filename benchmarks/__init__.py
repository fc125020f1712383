"""What the pages show of speed: ``results/*.json``, and the recordings that they draw.

``make bench`` makes all of it. The benchmarks themselves are in the package, in
``devicearray._bench``, where ``python -m devicearray bench`` runs them for whoever installed it.
"""
