"""Words of the command line: what the library says of its parameters, said of options.

Errors and warnings below `cli` speak Python: ``landmarks='bless_r'``. Here they become
``--landmarks bless_r``, at the one place where they are written to stderr. Texts that say more
than a name and a value have a line of their own in `PHRASES`; tests/cli/test_words.py looks at
every text of the library for what would still be Python.
"""

from __future__ import annotations

import re

from .messages import OPTIONS

NAME = rf"(?<![\w(.-])({'|'.join(OPTIONS)})"
CALL = r"[A-Z]\w*\((?:[^()]|\([^()]*\))*\)"
VALUE = rf"('[^']*'|{CALL}|[^\s,;:)]+)"

PHRASES = (
    (
        r"Delete it, or use Checkpoint\(\.\.\., resume=False\); if landmarks are random, set "
        r"random_state",
        "Give another --checkpoint, or delete it; if landmarks are random, give the same --seed",
    ),
    (
        r"Delete it to start again, or go on from its coefficients with solve\(.*\)$",
        "Give another --checkpoint, or delete it to start again",
    ),
    (r"Start again, or from State\(0, state\.coef\)", "Start again, with another --checkpoint"),
    (
        r"leave it out \(columns=\[\.\.\.\], on the command line --drop\)",
        "leave it out with --drop",
    ),
    (r"leave it out \((--drop [^;]*); in Python columns=\[\.\.\.\]\)", r"leave it out with \1"),
    (r"\(columns=\[\.\.\.\][^()]*, on the command line --(drop|ignore)\)", "with --drop"),
    (r"is named twice in columns=.*", "is named twice in --features"),
    (r"found 0 columns \(columns=\[\]\)", "found 0 columns in --features"),
    (r"\braise max_iter, penalty or tol\b", "raise --max-iter, --penalty or --tol"),
    (r"\braise penalty or tol\b", "raise --penalty or --tol"),
    (r"\braise max_iter\b", "raise --max-iter"),
    (
        r"give a Validate callback with others, or early_stopping=False",
        "give others by --validation FILE, or leave --early-stopping out",
    ),
    (r"\bearly_stopping=True\b", "--early-stopping"),
    (
        r"give the selector a smaller one, such as \S+, or a number of landmarks, as "
        r"BlessR\(m=1000\), whose",
        "give a number of landmarks, as --landmarks bless_r:1000, whose",
    ),
    (
        r"give landmarks for 'falkon', none for 'pcg', either for 'direct', loss= for 'newton'",
        "give --landmarks for --solver falkon, --landmarks none for pcg, either for direct",
    ),
    (r"penalty='auto' with cv=\S+; give a penalty", "--penalty auto; give a number"),
    (r"; for an estimator fitted elsewhere, set its engine_ to 'auto'", ""),
    (
        r"; use KernelRidge$",
        "; one fit needs none: describe its model, as by --kernel gaussian",
    ),
    (r"\buse landmarks\b", "use --landmarks"),
    (r"\bor use 'bless'", "or use --landmarks bless"),
    (r"\bbut (X|the rows) has\b", "but the table has"),
    (r"^y holds\b", "the target holds"),
    (r"(?<![\w-])memory_limit (is|allows)\b", r"--memory-limit \1"),
)
"""Texts that are more than a parameter and its value, and what stands for them."""


def in_options(text: str) -> str:
    """Return a text in which parameters of Python are options of the command line."""
    for pattern, words in PHRASES:
        text = re.sub(pattern, words, text)
    text = re.sub(rf"{NAME} must be\b", lambda found: f"{OPTIONS[found[1]]} must be", text)
    return re.sub(f"{NAME}={VALUE}", lambda found: f"{OPTIONS[found[1]]} {_value(found[2])}", text)


def _value(text: str) -> str:
    """Return a value as it is written after an option."""
    if text == "None":
        return "none"
    call = re.fullmatch(r"([A-Z]\w*)\(.*?\bm=(\d+).*\)", text)
    if call is None:
        return text.strip("'")
    from ..landmarks.base import selectors  # who speaks of one has imported it

    names = {selectors[name].__name__: name for name in selectors}
    return f"{names.get(call[1], call[1])}:{call[2]}"
