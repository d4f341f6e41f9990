"""What the rules of a set share, and what that saves."""
