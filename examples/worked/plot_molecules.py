"""
How many molecules have to be computed?
=======================================

The energy of a molecule is a smooth function of the positions of its atoms, and each computed
energy is expensive. How many energies does a model need before it predicts the others within a few
kcal/mol? This example generates molecules of atoms with a pair potential; real molecules need the
same steps.
"""

# %%
# Molecules of four to eight atoms, of three elements, at random distances from each other. The
# energy is the sum of Morse potentials of all pairs, whose depth and length depend on the elements.
import matplotlib.pyplot as plt
import numpy as np

from gramian import KernelRidge

rng = np.random.default_rng(0)
CHARGES, MOST = np.array([1.0, 6.0, 8.0]), 8


def molecule():
    """Return charges and positions: each atom bound to one that was there before."""
    count = rng.integers(4, MOST + 1)
    charges = rng.choice(CHARGES, count, p=[0.5, 0.35, 0.15])
    places = [np.zeros(3)]
    while len(places) < count:
        step = rng.standard_normal(3)
        new = places[rng.integers(len(places))] + step / np.linalg.norm(step) * rng.uniform(
            0.9, 1.5
        )
        if min(np.linalg.norm(new - old) for old in places) > 0.85:
            places.append(new)
    return charges, np.array(places)


def energy(charges, places):
    """Return the sum of the potentials of all pairs, in kcal/mol."""
    i, j = np.triu_indices(len(charges), 1)
    distance = np.linalg.norm(places[i] - places[j], axis=1)
    depth, length = (
        40 + 10 * np.sqrt(charges[i] * charges[j]),
        1.0 + 0.02 * (charges[i] + charges[j]),
    )
    return np.sum(depth * ((1 - np.exp(-1.5 * (distance - length))) ** 2 - 1))


def coulomb_matrix(charges, places):
    """Return the upper half of the Coulomb matrix, rows sorted by their norms."""
    distance = np.linalg.norm(places[:, None] - places[None], axis=2)
    np.fill_diagonal(distance, 1)
    matrix = np.outer(charges, charges) / distance
    np.fill_diagonal(matrix, 0.5 * charges**2.4)
    order = np.argsort(-np.linalg.norm(matrix, axis=1))
    whole = np.zeros((MOST, MOST))
    whole[: len(order), : len(order)] = matrix[np.ix_(order, order)]
    return whole[np.triu_indices(MOST)]


made = [molecule() for _ in range(4000)]
X = np.array([coulomb_matrix(*one) for one in made])
y = np.array([energy(*one) for one in made])
X_test, y_test = X[3000:], y[3000:]

# %%
# All entries of Coulomb matrices share one scale, so the features are not standardised:
# ``standardize=False``. The target is standardised. All rows are centers. Lengthscale and penalty
# are chosen once, with 1,000 molecules; rows times penalty is kept constant.
settings = dict(standardize=False, standardize_target=True, landmarks=None, random_state=0)
chosen = KernelRidge("l1_laplacian", **settings).fit(X[:1000], y[:1000])
sizes, errors = [125, 250, 500, 1000, 2000, 3000], []
for n in sizes:
    model = KernelRidge(chosen.kernel_, penalty=chosen.penalty_ * 1000 / n, **settings)
    model.fit(X[:n], y[:n])
    errors.append(np.mean(np.abs(model.predict(X_test) - y_test)))

# %%
# Three molecules that the model has not seen: the best prediction, a typical one, and the worst.
# Gray atoms are carbon, red ones oxygen, and white ones hydrogen.
predicted = model.predict(X_test)
order = np.argsort(np.abs(predicted - y_test))
figure, shown = plt.subplots(1, 3, figsize=(10, 3.6), layout="constrained")
for axes, index in zip(shown, order[[0, len(order) // 2, -1]], strict=True):
    charges, places = made[3000 + index]
    flat = (places - places.mean(axis=0)) @ np.linalg.svd(places - places.mean(axis=0))[2][:2].T
    for i, j in zip(*np.triu_indices(len(flat), 1), strict=True):
        if np.linalg.norm(places[i] - places[j]) < 1.5:
            axes.plot(*flat[[i, j]].T, color="0.5", linewidth=4, zorder=1)
    colors = [{1.0: "white", 6.0: "0.4", 8.0: "tab:red"}[charge] for charge in charges]
    axes.scatter(*flat.T, s=300 + 60 * charges, c=colors, edgecolors="0.2", zorder=2)
    axes.set_title(f"true {y_test[index]:.0f}, predicted {predicted[index]:.0f} kcal/mol")
    axes.set(aspect="equal", xlim=(-2.6, 2.6), ylim=(-2, 2))
    axes.axis("off")
plt.show()

# %%
figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4.4), layout="constrained")
ends = [y_test.min(), y_test.max()]
left.plot(ends, ends, color="0.7", linewidth=1)
left.scatter(y_test, predicted, s=6, alpha=0.5)
left.set(xlabel="true energy (kcal/mol)", ylabel="predicted", aspect="equal")
left.set_title(f"3,000 molecules: mean error {errors[-1]:.1f}, spread {y_test.std():.0f}")
right.loglog(sizes, errors, marker="o")
right.set(xlabel="molecules", ylabel="mean absolute error (kcal/mol)", title="learning curve")
right.set_xticks(sizes, [f"{n:,}" for n in sizes])
right.minorticks_off()
ticks = [5, 10, 20, 40]
right.set_yticks(ticks, [str(tick) for tick in ticks])
right.grid(alpha=0.3)
plt.show()

# %%
# Learning curves in chemistry are often a straight line, as in the right picture: twice the
# molecules divide the error by the same factor. Real molecules: :doc:`/molecules`.
