"""Add the words that people type into the search box to the index of each page."""

from __future__ import annotations

from typing import Any

from sphinx.application import Sphinx

SEARCH_TERMS = {
    "accuracy": "automl, cross-validation, cv, feature importance, feature selection, grid search, "
    "hyperparameter tuning, random search, time budget",
    "choosing": "alpha, hyperparameters, multioutput, number of landmarks, regularization strength",
    "clusters": "dask, distributed, ray, spark",
    "coming_from": "falkon, gamma, gpytorch, n_jobs, random forest, sklearn, "
    "support vector machine, svm, svr, xgboost",
    "deviations": "error bars, gaussian process, leave-one-out, posterior samples, "
    "standard deviation, uncertainty, variance",
    "errors": "error message, exception, traceback, warning",
    "explanations": "ice, interpretability, lime, partial dependence, pdp, shap, why",
    "faq": "joblib, pickle, random seed, reproducible",
    "first_model": "example, getting started, load model, quick start, save model, tutorial",
    "gpus": "cuda, nvidia, tensor, torch",
    "install": "compiler, conda, pip, wheel, windows",
    "intervals": "confidence interval, conformal prediction, coverage, prediction interval",
    "kernels": "custom kernel, graph kernel, matern, own kernel, polynomial kernel, "
    "precomputed kernel, rbf, string kernel",
    "large": "big data, incremental learning, memory error, online learning, out of core, "
    "out of memory, partial_fit, streaming",
    "losses": "count data, huber, logistic regression, mae, outliers, poisson, "
    "quantile regression, robust regression",
    "molecules": "chemistry, drug, force field, forces, rdkit, smiles, tanimoto",
    "pictures": "matplotlib, plot, visualization",
    "plan": "complexity, convergence, cost estimate, memory estimate, runtime",
    "probabilities": "calibration, class weight, imbalanced classes, predict_proba, threshold",
    "report": "html report, model card, roc curve",
    "serving": "container, deploy, deployment, docker, fastapi, latency, mlflow, model registry, "
    "onnx, production, rest api, skops",
    "spatial": "coordinates, geostatistics, gis, interpolation, kriging, longitude, map, variogram",
    "stacking": "blending, boosted trees, ensemble, lightgbm",
    "tables": "categorical features, csv, data frame, excel, missing values, nan, "
    "one-hot encoding, target encoding",
    "text": "bag of words, nlp, sparse matrix, tf-idf, tfidf",
    "time": "arima, forecast, forecasting, seasonality, time series",
    "worked/plot_customers": "churn, classification",
}
"""Words and synonyms by page."""


def add_terms(app: Sphinx, docname: str, source: list[str]) -> None:
    """Add index entries below the title of a page."""
    terms = SEARCH_TERMS.get(docname)
    if terms is None:
        return
    if docname.startswith("worked/"):
        source[0] = f".. index:: {terms}\n\n{source[0]}"
        return
    title, _, rest = source[0].partition("\n")
    entries = "".join(f"```{{index}} {term}\n```\n" for term in terms.split(", "))
    source[0] = f"{title}\n\n{entries}\n{rest}"


def setup(app: Sphinx) -> dict[str, Any]:
    """Register it."""
    app.connect("source-read", add_terms)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
