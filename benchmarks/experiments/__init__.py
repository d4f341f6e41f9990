"""The papers' experiments: an experiment is data; one runner, one plotter and one report for all.

`experiment` says what an experiment is, `zstream` and `thesis` list them, `running` measures,
`drawing` plots, `writing` reports.
"""
