"""The subcommands of `cepheid`, one module each."""
