"""Cayuga's technical benchmark: hundreds of thousands of rules over one stream."""
