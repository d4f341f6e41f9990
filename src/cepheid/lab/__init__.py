"""`cepheid lab`: a local page to try patterns in, and one beside a running stream.

situations                          a query and events, and the forms in which they are passed on
found, questions                    what is answered about them
words                               what the page completes
answers_process, desk               the process that answers, and who may ask it
gate, pages, server                 HTTP: who gets in, what is there, where it listens
journal, live                       what a stream writes down, and what its page shows of it
"""
