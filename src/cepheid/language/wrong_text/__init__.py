"""Text that is refused: what a person hears who wrote no query, another language's, or too much."""
