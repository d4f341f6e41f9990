"""Rules of Sigma as rules of ours: `.cep` files and tables that a person would keep.

    field_names   what fields and log sources are called in the events
    marked_text   texts with constants that may become columns of a table
    detections    a detection → a condition on one event
    correlations  a correlation → a pattern
    sources       files → Sigma's rules, and what is wrong with them
    drafts        Sigma's rules → drafts of ours, and what can't be said
    families      rules that differ only in constants → a query and a table
    folder        drafts → files

pySigma reads the rules (the extra `sigma`).
"""
