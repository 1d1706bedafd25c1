"""Gaussian processes and kriging of other packages, as their tutorials use them."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

import numpy as np

ADAM_STEPS, ADAM_RATE = 100, 0.1
INDUCING_POINTS, BATCH_ROWS, EPOCHS, SVGP_RATE = 500, 1_024, 50, 0.01


class Scaled:
    """Base of processes of standardised features and targets."""

    def fit(self, X: np.ndarray, y: np.ndarray) -> Scaled:
        """Standardise features and targets, and fit the process."""
        self.center, self.scale = X.mean(axis=0), X.std(axis=0)
        self.shift, self.spread = y.mean(), y.std()
        self.fit_scaled((X - self.center) / self.scale, (y - self.shift) / self.spread)
        return self

    def predict(self, X: np.ndarray, *, return_std: bool) -> Any:
        """Return mean and deviations of new observations."""
        mean, std = self.predict_scaled((X - self.center) / self.scale)
        return self.shift + self.spread * mean, self.spread * std

    def fit_scaled(self, X: np.ndarray, y: np.ndarray) -> None:
        raise NotImplementedError

    def predict_scaled(self, X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        raise NotImplementedError


class ExactGPyTorch(Scaled):
    """`gpytorch.models.ExactGP`: Matern 3/2 with a lengthscale for each feature, by Adam."""

    def fit_scaled(self, X: np.ndarray, y: np.ndarray) -> None:
        import gpytorch
        import torch

        torch.manual_seed(0)
        rows, target = (torch.as_tensor(values, dtype=torch.float64) for values in (X, y))

        class Process(gpytorch.models.ExactGP):
            def __init__(self) -> None:
                super().__init__(rows, target, gpytorch.likelihoods.GaussianLikelihood())
                self.mean_module = gpytorch.means.ConstantMean()
                self.covar_module = _matern(gpytorch, X.shape[1])

            def forward(self, x: Any) -> Any:
                mean, covariance = self.mean_module(x), self.covar_module(x)
                return gpytorch.distributions.MultivariateNormal(mean, covariance)

        self.model = Process().double()
        likelihood = gpytorch.mlls.ExactMarginalLogLikelihood(self.model.likelihood, self.model)
        self.model.train()
        optimizer = torch.optim.Adam(self.model.parameters(), lr=ADAM_RATE)
        for _ in range(ADAM_STEPS):
            optimizer.zero_grad()
            loss = -likelihood(self.model(rows), target)
            loss.backward()
            optimizer.step()

    def predict_scaled(self, X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return _observed(self.model, X)


class SparseGPyTorch(Scaled):
    """`gpytorch.models.ApproximateGP` with inducing points that move: SVGP, by Adam in batches."""

    def fit_scaled(self, X: np.ndarray, y: np.ndarray) -> None:
        import gpytorch
        import torch

        torch.manual_seed(0)
        rows, target = (torch.as_tensor(values, dtype=torch.float64) for values in (X, y))
        points = rows[torch.randperm(len(rows))[:INDUCING_POINTS]].clone()

        class Process(gpytorch.models.ApproximateGP):
            def __init__(self) -> None:
                distribution = gpytorch.variational.CholeskyVariationalDistribution(len(points))
                super().__init__(
                    gpytorch.variational.VariationalStrategy(
                        self, points, distribution, learn_inducing_locations=True
                    )
                )
                self.mean_module = gpytorch.means.ConstantMean()
                self.covar_module = _matern(gpytorch, X.shape[1])
                self.likelihood = gpytorch.likelihoods.GaussianLikelihood()

            def forward(self, x: Any) -> Any:
                mean, covariance = self.mean_module(x), self.covar_module(x)
                return gpytorch.distributions.MultivariateNormal(mean, covariance)

        self.model = Process().double()
        self.model.train()
        bound = gpytorch.mlls.VariationalELBO(self.model.likelihood, self.model, len(rows))
        optimizer = torch.optim.Adam(self.model.parameters(), lr=SVGP_RATE)
        for _ in range(EPOCHS):
            for batch in torch.randperm(len(rows)).split(BATCH_ROWS):
                optimizer.zero_grad()
                loss = -bound(self.model(rows[batch]), target[batch])
                loss.backward()
                optimizer.step()

    def predict_scaled(self, X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return _observed(self.model, X)


class GSToolsKriging(Scaled):
    """`gstools.krige.Ordinary`, its exponential variogram fitted to the empirical one."""

    def fit_scaled(self, X: np.ndarray, y: np.ndarray) -> None:
        import gstools

        bins = np.linspace(0, 2, 16)
        centers, half_squares = gstools.vario_estimate(X.T, y, bins)
        model = gstools.Exponential(dim=X.shape[1])
        model.fit_variogram(centers, half_squares)
        self.krige = gstools.krige.Ordinary(model, X.T, y, exact=False)
        self.noise = model.nugget

    def predict_scaled(self, X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        mean, variance = self.krige(X.T, mesh_type="unstructured")
        # With exact=False, variances are of the field, which has no nugget.
        return mean, np.sqrt(variance.clip(min=0) + self.noise)


class PyKrigeKriging(Scaled):
    """`pykrige` ordinary kriging in two or three dimensions, with an exponential variogram."""

    def fit_scaled(self, X: np.ndarray, y: np.ndarray) -> None:
        import pykrige

        by_dimension = {2: pykrige.OrdinaryKriging, 3: pykrige.OrdinaryKriging3D}
        make = by_dimension[X.shape[1]]
        self.krige = make(*X.T, y, variogram_model="exponential", exact_values=False)

    def predict_scaled(self, X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        mean, variance = self.krige.execute("points", *X.T)
        return np.asarray(mean), np.sqrt(np.asarray(variance).clip(min=1e-12))


def small_rivals() -> dict[str, Callable[[], Any]]:
    """Return the processes of 1,000 rows whose packages are installed."""
    return _installed(
        {
            "GPyTorch, exact": ("gpytorch", ExactGPyTorch),
            "GSTools": ("gstools", GSToolsKriging),
            "PyKrige": ("pykrige", PyKrigeKriging),
        }
    )


def large_rivals() -> dict[str, Callable[[], Any]]:
    """Return the processes of 8,000 rows whose packages are installed."""
    return _installed({"GPyTorch, SVGP": ("gpytorch", SparseGPyTorch)})


def _installed(rivals: dict[str, tuple[str, Callable[[], Any]]]) -> dict[str, Callable[[], Any]]:
    return {name: make for name, (package, make) in rivals.items() if find_spec(package)}


def _matern(gpytorch: Any, d: int) -> Any:
    return gpytorch.kernels.ScaleKernel(gpytorch.kernels.MaternKernel(nu=1.5, ard_num_dims=d))


def _observed(model: Any, X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return mean and deviations of new observations of a model of GPyTorch."""
    import torch

    model.eval()
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        predicted = model.likelihood(model(torch.as_tensor(X, dtype=torch.float64)))
        return predicted.mean.numpy(), predicted.variance.sqrt().numpy()
