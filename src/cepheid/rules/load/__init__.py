"""Rules as they come in: query files, tables of parameters, names, and whether they are right."""
