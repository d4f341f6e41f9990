"""From a query as written to a bound one: names, types, roles, key, window, outputs."""
