"""Feature maps, principal components, canonical correlations and clusters in kernel spaces."""
