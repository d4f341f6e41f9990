"""The operators of a plan at run time: `base` is what all of them have; `engine.node_operators`
makes them."""
