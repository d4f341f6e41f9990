"""`python -m cepheid.cli` is `cepheid`, for when the script isn't on PATH."""

from cepheid_command import main

if __name__ == "__main__":
    main()
