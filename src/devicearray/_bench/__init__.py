"""Speed, as ratios measured side by side in one process: ``python -m devicearray bench``.

The benchmarks are part of the package, not of its repository: a ratio holds on the machine and the
device where it was measured, so a reader with another device should get a table of their own from
what ``pip install`` gave them. Prior art: ``numpy.test()`` and ``scipy.test()``, whose tests are
installed for the same reason; airspeed velocity, which runs a project's benchmarks from a checkout,
over its commits, and answers another question.

A `suite.Suite` yields an `interleaved.Comparison` for each line of its table. Tests never assert
a time; what the site says of speed it reads from ``benchmarks/results``, which this command wrote.
"""
