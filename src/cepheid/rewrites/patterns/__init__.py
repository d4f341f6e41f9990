"""Rewrites of the pattern: parts are flattened, merged, reordered or taken out."""
