"""
Components, clusters, and two views
===================================

Unsupervised kernel methods: principal components and k-means in the space of the kernel, and
correlated functions of two views. All three use Nyström features of landmarks, and so scale to any
number of rows.
"""

# %%
import matplotlib.pyplot as plt
import numpy as np
from sklearn.cluster import KMeans
from sklearn.datasets import make_circles
from sklearn.decomposition import PCA

from gramian import KernelCCA, KernelKMeans, KernelPCA

X, ring = make_circles(2000, factor=0.35, noise=0.06, random_state=0)

# %%
# **Kernel PCA.** No line separates two rings. The first component of a Gaussian kernel approximates
# the distance of a point from the center.
components = {
    "PCA": PCA(2).fit_transform(X),
    "KernelPCA": KernelPCA(2, lengthscale=0.5, landmarks=100, random_state=0).fit_transform(X),
}
figure, both = plt.subplots(1, 2, figsize=(9, 4.2), layout="constrained")
for axes, (name, Z) in zip(both, components.items(), strict=True):
    axes.scatter(*Z.T, c=ring, s=4, cmap="coolwarm")
    axes.set(title=name, xlabel="first component", ylabel="second component")
plt.show()

# %%
# **Kernel k-means.** Clusters of scikit-learn's ``KMeans`` are convex; clusters in the space of a
# kernel need not be.
clusters = {
    "KMeans": KMeans(2, random_state=0, n_init=5).fit_predict(X),
    "KernelKMeans": KernelKMeans(
        2, lengthscale=0.25, landmarks=200, n_init=5, random_state=0
    ).fit_predict(X),
}
figure, both = plt.subplots(1, 2, figsize=(9, 4.2), layout="constrained")
for axes, (name, labels) in zip(both, clusters.items(), strict=True):
    axes.scatter(*X.T, c=labels, s=4, cmap="coolwarm")
    axes.set(title=name, aspect="equal")
plt.show()

# %%
# **Kernel CCA.** Two noisy views of one angle: a point on a circle, and the arc length. Kernel CCA
# finds functions of both views that agree, and they agree on new rows, too.
rng = np.random.default_rng(0)
angle = rng.uniform(0, 2 * np.pi, 1500)
first = np.column_stack([np.cos(2 * angle), np.sin(2 * angle)]) + 0.1 * rng.standard_normal(
    (1500, 2)
)
second = np.column_stack([angle % np.pi, rng.standard_normal(1500)])
second += 0.05 * rng.standard_normal((1500, 2))
cca = KernelCCA(1, landmarks=100, random_state=0).fit(first[:1000], second[:1000])
f, g = cca.transform(first[1000:], second[1000:])
correlation = np.corrcoef(f[:, 0], g[:, 0])[0, 1]
figure, (left, right) = plt.subplots(1, 2, figsize=(9, 4.2), layout="constrained")
dots = dict(c=angle[1000:] % np.pi, s=14, cmap="twilight", edgecolors="0.3", linewidths=0.3)
left.scatter(first[1000:, 0], second[1000:, 0], **dots)
left.set(title="the two views, one feature of each", xlabel="first view", ylabel="second view")
right.scatter(f[:, 0], g[:, 0], **dots)
right.set(title=f"KernelCCA: correlation {correlation:.2f} on new rows")
right.set(xlabel="f(first view)", ylabel="g(second view)")
plt.show()
