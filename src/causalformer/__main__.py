"""Run the command line as ``python -m causalformer``."""

from causalformer.cli import main

if __name__ == "__main__":
    main()
