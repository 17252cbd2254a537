"""`python -m isulad_py` starts the daemon."""

from isulad_py.daemon.cli import main

if __name__ == "__main__":
    main()
