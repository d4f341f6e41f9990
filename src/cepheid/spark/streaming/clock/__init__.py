"""Time on a stream: watermarks, events ahead of the clock, and heartbeats if no event comes."""
