"""What isn't evaluated by joins alone: automata, stacks, and automata below joins."""
