"""Reads rules: query files, tables of parameters and names, and checks them."""
