"""Plans beyond joins: automata, stacks, and automata below joins."""
