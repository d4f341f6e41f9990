"""A query and events, and the forms in which they leave the page.

situation        what the page shows and a link carries
cells            the events as JSON
notation         the events as text
code             both as a program in Python, and as a command
kept_case        both as a test case
"""
