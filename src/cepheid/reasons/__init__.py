"""Why a query matched or not: what each part of it lets through, by running variations of it.

why                          `cep.why`: the report, also on given events
funnel, timeline             `cep.funnel` and `cep.timeline`, and their pictures
anatomy, progress            a query without some of its parts; how far partial matches get
trials                       running variations of a query: what reports need of them
local_trials, far_trials     the same over events in this process, and where the events are
looked_at                    which events are looked at, and where
columns_of_text, saved       how results are printed and saved
"""
