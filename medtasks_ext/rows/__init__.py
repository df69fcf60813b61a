"""Where rows come from: local files, originals of the authors, pinned downloads; what their columns are."""
