"""`cep.why`: what stopped the matches of a query, or why given events don't match together.

investigation, spelling                the search for reasons
report, report_text, report_page       the report: as data, as text, as a page
given_events, chosen_events, why_not   the same for events that the caller names
pinned_events, changes                 runs in which they are bound; changes with which they match
"""
