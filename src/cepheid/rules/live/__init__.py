"""Rules that change while a stream runs: their versions, and a folder that is watched."""
