"""Parts of the layer and of its reference: projections, selection, cache, projections of rows."""
