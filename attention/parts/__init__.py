"""Parts of the layer and of its reference: projections, selection, cache, simplex."""
