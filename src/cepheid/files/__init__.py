"""Files of events: which format they have, how they are read, and how they are written."""
