"""`python -m fencepost` is the command `fencepost`."""

from fencepost.start import main

if __name__ == "__main__":  # not in what an executor spawns
    raise SystemExit(main())
