"""What is known of a stream: its figures, how far it got, and how it ended.

reports, sums, metrics   figures of batches: `cep.status`, their sums, Prometheus
checkpoint, outcome      how far a stream has come, and why it failed
"""
