"""
What does a house cost here?
============================

20,640 blocks of houses have a place and a median price. What is the price between them, and where
should nobody trust the map? A Gaussian process answers both.
"""

# %%
# Longitude, latitude, and the price in thousands of dollars. Prices of half a million and more are
# recorded as half a million, and are left out. The logarithm makes equal factors equal steps.
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pyarrow.parquet as pq

from gramian import GaussianProcess
from gramian.data import sample_path
from gramian.kernels import Haversine
from gramian.plots import VariogramDisplay

table = pq.read_table(sample_path("california_housing")).to_pandas()
table = table[table["target"] < 500_000].sample(5000, random_state=0)
places = table[["latitude", "longitude"]]
price = np.log10(table["target"] / 1000)
train, test = slice(0, 2000), slice(2000, None)

# %%
# The kernel is a function of the distance on the globe, in kilometres; an exponential covariance
# suits rough surfaces. The likelihood chooses its range and the noise, within the blocks.
kernel = Haversine(50.0, profile="matern12").on(["latitude", "longitude"])
process = GaussianProcess(kernel, random_state=0).fit(places[train], price[train])
print(process.kernel_)
print(f"noise: a factor of {10**process.noise_**0.5:.2f}")

# %%
# Test on other blocks. A deviation is right if nine of ten prices are within 1.64 of them.
mean, std = process.predict(places[test], return_std=True)
apart, baseline = np.abs(price[test] - mean), np.abs(price[test] - price[train].mean())
print(f"typical error: a factor of {10 ** apart.median():.2f}")
print(f"of a constant: a factor of {10 ** baseline.median():.2f}")
print(f"within the 90 % interval: {(apart < 1.64 * std).mean():.0%}")

# %%
# The map, and its deviations. The white line surrounds the places that are out of range, where the
# process returns to its mean.
west = {"latitude": (32.5, 42.0), "longitude": (-124.5, -114.0)}
grid = process.predict_grid(west, 0.07)
figure, axes = plt.subplots(1, 2, figsize=(11, 5), layout="constrained")
values = (10**grid.mean, 10**grid.std), ("price, 1,000 dollars", "deviation, as a factor")
for shown, value, title in zip(axes, *values, strict=True):
    picture = shown.pcolormesh(grid.axes[1], grid.axes[0], value, cmap="viridis")
    figure.colorbar(picture, ax=shown)
    shown.contour(grid.axes[1], grid.axes[0], grid.extrapolated, levels=[0.5], colors="w")
    shown.set(title=title, xlabel="longitude", ylabel="latitude", aspect=1.25)
axes[1].plot(places["longitude"][train], places["latitude"][train], "k.", markersize=0.7)
plt.show()

# %%
# Does the kernel describe the data? The points are half the mean squared difference of prices at a
# distance, and the line is the kernel. From 50 to 250 kilometres the line is above the points: the
# process expects more variation than there is, so its intervals are wide rather than narrow.
figure, axes = plt.subplots(figsize=(7, 3.8), layout="constrained")
VariogramDisplay.from_estimator(process, places[train], price[train], degrees=True, ax=axes)
plt.show()

# %%
# Which maps are possible? The mean is smoother than any of them. Samples along one line, from San
# Francisco to Lake Tahoe, have the roughness of the data.
line = pd.DataFrame(np.linspace([37.77, -122.42], [39.1, -120.0], 120), columns=places.columns)
paths = 10 ** process.sample_y(line, 5, random_state=1)
mean, std = process.predict(line, return_std=True)
figure, axes = plt.subplots(figsize=(8, 3.8), layout="constrained")
axes.plot(line["longitude"], paths, color="0.7", linewidth=0.8)
axes.plot(line["longitude"], 10**mean, color="tab:blue")
axes.set(xlabel="longitude", ylabel="price, 1,000 dollars")
plt.show()

# %%
# More columns than the place make better predictions: this map answers only what a place is worth.
# Kernels, held-out regions and many rows: :doc:`/spatial`.
