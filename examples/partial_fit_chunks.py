"""Learn from chunks of rows: the same model as from all rows at once.

python examples/partial_fit_chunks.py
"""

import numpy as np

from steelyard import FixedEdgesDiscretizer, NaiveBayes

rng = np.random.default_rng(0)
n = 30_000
y = rng.integers(0, 2, n)
colour = np.array(["red", "green", "blue"], dtype=object)[rng.integers(0, 3, n)]
size = rng.normal(y, 1.0)
X = np.column_stack([colour, size.astype(object)])

# Cut points that are given, not learned, are the same in every chunk.
settings = {"numeric": FixedEdgesDiscretizer([-1.0, 0.0, 1.0, 2.0])}
whole = NaiveBayes(**settings).fit(X, y)

chunked = NaiveBayes(**settings)
for start in range(0, n, 10_000):
    rows = slice(start, start + 10_000)
    chunked.partial_fit(X[rows], y[rows], classes=[0, 1])
    print(f"after {start + 10_000:>6} rows: accuracy {chunked.score(X, y):.4f}")

same = np.array_equal(chunked.predict_proba(X), whole.predict_proba(X))
print(f"same probabilities as one fit, bit for bit: {same}")
