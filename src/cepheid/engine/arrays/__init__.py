"""Arrays of values: columns, conversions, arithmetic, folds, expressions over whole columns."""
