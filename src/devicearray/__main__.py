"""``python -m devicearray``: see `devicearray._command`."""

import sys

from devicearray._command import interpreter_options, main

if __name__ == "__main__":
    main(sys.argv[1:], interpreter_options(sys.orig_argv, len(sys.argv) - 1))
