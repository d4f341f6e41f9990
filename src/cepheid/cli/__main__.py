"""`python -m cepheid.cli` is `cepheid`, for when the script isn't on PATH."""

from cepheid.cli import main

if __name__ == "__main__":
    main()
