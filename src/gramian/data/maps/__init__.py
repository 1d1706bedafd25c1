"""Maps of features: standardisation, quantiles, linear maps, copies of rows."""
