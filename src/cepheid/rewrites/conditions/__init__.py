"""Rewrites of WHERE and HAVING: conditions are simplified, moved, added or left out."""
