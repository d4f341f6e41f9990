"""The operators of a plan at run time: `build` makes them, `base` is what all of them have."""
