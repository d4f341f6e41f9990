"""Why a query matched or not: what each part of it lets through, by running variations of it.

why                          `cep.why`: the report, also on given events
funnel, timeline             `cep.funnel` and `cep.timeline`, and their pictures
anatomy, trials              a query without some of its parts, and running it
looked_at, progress          which events are looked at, and how far partial matches get
columns_of_text, saved       how results are printed and saved
"""
