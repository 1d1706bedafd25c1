"""
Which library wrote this sentence?
==================================

Text becomes rows of word counts with hundreds of thousands of columns, of which some twenty are not
zero. The texts of this example are on every computer that runs it: the first sentences of the
docstrings of five libraries. Which library does a sentence come from?
"""

# %%
# All functions and classes with a docstring, each sentence once.
import importlib
import inspect
import pkgutil

import matplotlib.pyplot as plt
import numpy as np
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import ConfusionMatrixDisplay
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline

from gramian import KernelRidgeClassifier

LIBRARIES = {
    "numpy": ["numpy", "numpy.linalg", "numpy.ma", "numpy.random", "numpy.polynomial"],
    "scipy": ["scipy.stats", "scipy.special", "scipy.optimize", "scipy.signal", "scipy.sparse"],
    "scikit-learn": ["sklearn"],
    "pandas": ["pandas", "pandas.api"],
    "matplotlib": ["matplotlib"],
}


def modules_of(names):
    """Return modules with the public modules in their packages."""
    for name in names:
        module = importlib.import_module(name)
        yield module
        if "." not in name and name not in {"numpy", "pandas"}:
            for info in pkgutil.iter_modules(module.__path__):
                if not info.name.startswith("_") and info.name not in {"tests", "conftest"}:
                    yield importlib.import_module(f"{name}.{info.name}")


def sentences_of(library, names):
    """Return the first sentences of the docstrings of functions, classes and methods."""
    package = names[0].split(".")[0]
    sentences = set()
    for module in modules_of(names):
        things = [thing for key, thing in inspect.getmembers(module) if key[0] != "_"]
        classes = [thing for thing in things if inspect.isclass(thing)]
        things += [thing for cls in classes for key, thing in vars(cls).items() if key[0] != "_"]
        for thing in things:
            home = getattr(thing, "__module__", None) or package
            if callable(thing) and home.startswith(package):
                paragraph = (inspect.getdoc(thing) or "").split("\n\n")[0]
                sentences.add(" ".join(paragraph.split()))
    return sorted(sentence for sentence in sentences if 4 <= len(sentence.split()) <= 40)


texts, labels = [], []
for library, names in LIBRARIES.items():
    sentences = sentences_of(library, names)
    texts += sentences
    labels += [library] * len(sentences)
    print(f"{library}: {len(sentences):,} sentences")
labels = np.array(labels)
split = train_test_split(texts, labels, test_size=0.3, random_state=0, stratify=labels)
train_texts, test_texts, train_labels, test_labels = split

# %%
# Words and pairs of words, weighted by their rarity, in rows of norm 1. A kernel model on sparse
# rows is a step of a pipeline. The linear kernel is the cosine of two sentences; the Gaussian one
# also sees combinations of words. A linear model is the baseline that a text model has to beat.
words = TfidfVectorizer(sublinear_tf=True, ngram_range=(1, 2))
contenders = {
    "logistic regression": LogisticRegression(C=10, max_iter=1000),
    "linear kernel": KernelRidgeClassifier("linear", lengthscale=1.0, random_state=0),
    "Gaussian kernel": KernelRidgeClassifier("gaussian", lengthscale=1.0, random_state=0),
}
fitted = {}
for name, classifier in contenders.items():
    fitted[name] = make_pipeline(words, classifier).fit(train_texts, train_labels)
    print(f"{name:20} {fitted[name].score(test_texts, test_labels):.1%} right")
print(f"{'the largest library':20} {max(np.mean(test_labels == one) for one in LIBRARIES):.1%}")

# %%
# Which libraries are confused?
model = fitted["Gaussian kernel"]
figure, axes = plt.subplots(figsize=(6.5, 5), layout="constrained")
ConfusionMatrixDisplay.from_estimator(
    model, test_texts, test_labels, normalize="true", values_format=".2f", cmap="Blues",
    colorbar=False, ax=axes,
)  # fmt: skip
plt.show()

# %%
# Probabilities tell clear sentences from those that any library could have written.
probability = model.predict_proba(test_texts)
certain = probability.max(axis=1)
for kind, index in (("most certain", certain.argmax()), ("least certain", certain.argmin())):
    print(f"{kind}: {test_texts[index]}")
    print(f"   {test_labels[index]}, predicted {model.classes_[probability[index].argmax()]}")
right = model.predict(test_texts) == test_labels
for low, high in ((0, 0.5), (0.5, 0.8), (0.8, 0.95), (0.95, 1.01)):
    chosen = (low <= certain) & (certain < high)
    share = right[chosen].mean()
    print(f"probability {low} to {min(high, 1)}: {share:.0%} of {chosen.sum()} are right")

# %%
# Files of text that do not fit into memory: :doc:`/text`.
