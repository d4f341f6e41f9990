"""What `cepheid run --stream` does: folders of files as streams, and what is kept of a run."""
