"""The functions behind the reconstructed datasets: each takes sizes, free parameters and a seed, and returns (X, y).

The same bytes on every machine: all randomness comes from numpy's RandomState, whose streams are frozen by numpy's
policy (those of Generator may change between releases), and `settle` rounds to four decimals, so that a last bit that
depends on the processor (matrix products, logarithms) cannot show. A table of hashes in the repository checks it.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from sklearn import datasets
from sklearn.utils import check_random_state

Array = NDArray[np.float64]
Table = tuple[Array, Array]

DECIMALS = 4


def settle(X: Array, y: Array) -> Table:
    """Both as float64 at four decimals, without negative zeros."""
    X, y = np.asarray(X, dtype=np.float64), np.asarray(y, dtype=np.float64)
    return np.round(X, DECIMALS) + 0.0, np.round(y, DECIMALS) + 0.0


def clusters(
    n: int,
    d: int,
    classes: int,
    *,
    informative: int,
    redundant: int = 0,
    per_class: int = 1,
    separation: float = 1.0,
    flip: float = 0.01,
    majority: float | None = None,
    seed: int = 42,
) -> Table:
    """Gaussian clusters at the corners of a hypercube, `per_class` a class; `flip` of the labels drawn at random."""
    X, y = datasets.make_classification(
        n_samples=n,
        n_features=d,
        n_informative=informative,
        n_redundant=redundant,
        n_classes=classes,
        n_clusters_per_class=per_class,
        class_sep=separation,
        flip_y=flip,
        weights=None if majority is None else [majority],
        random_state=seed,
    )
    return X, y


def blobs(n: int, d: int, classes: int, *, spread: float, seed: int = 42) -> Table:
    """One round Gaussian a class, centres uniform in a cube of side 20, standard deviation `spread`."""
    X, y = datasets.make_blobs(n_samples=n, n_features=d, centers=classes, cluster_std=spread, random_state=seed)
    return X, y


def moons(n: int, d: int, *, noise: float, seed: int = 42) -> Table:
    """Two half circles in two columns; the other d - 2 are noise."""
    X, y = datasets.make_moons(n_samples=n, noise=noise, random_state=seed)
    return _with_noise_columns(X, d, seed), y


def circles(n: int, d: int, *, noise: float, factor: float, seed: int = 42) -> Table:
    """Two concentric circles in two columns; the other d - 2 are noise."""
    X, y = datasets.make_circles(n_samples=n, noise=noise, factor=factor, random_state=seed)
    return _with_noise_columns(X, d, seed), y


def hastie(n: int, *, seed: int = 42) -> Table:
    """Ten normal columns; the class says whether their squared length exceeds its median, 9.34."""
    X, y = datasets.make_hastie_10_2(n_samples=n, random_state=seed)
    return X, (y + 1) / 2


def xor(n: int, d: int, *, spread: float, noise: float, seed: int = 42) -> Table:
    """Two latent signs with Gaussian `spread`; the class is their XOR; d columns are random mixtures plus `noise`."""
    random = check_random_state(seed)
    signs = random.randint(0, 2, size=(n, 2))
    latent = 2 * signs - 1 + spread * random.normal(size=(n, 2))
    X = latent @ random.normal(size=(2, d)) + noise * random.normal(size=(n, d))
    return X, signs[:, 0] ^ signs[:, 1]


def steps(n: int, d: int, classes: int, *, dent: float, flip: float = 0.0, seed: int = 42) -> Table:
    """The class is the part of equal size in which column 0 falls, moved on by one where column 1 is in its top `dent`.

    Axis-parallel rules: trees read them off, a linear model gets all but the dents, the other columns are noise.
    """
    random = check_random_state(seed)
    X = random.normal(size=(n, d))
    y = np.searchsorted(np.quantile(X[:, 0], np.arange(1, classes) / classes), X[:, 0])
    dented = X[:, 1] > np.quantile(X[:, 1], 1 - dent)
    y = np.where(dented, y + 1, y) % classes
    flipped = random.uniform(size=n) < flip
    return X, np.where(flipped, random.randint(0, classes, size=n), y)


def logit(n: int, d: int, *, informative: int, slope: float, majority: float, seed: int = 42) -> Table:
    """Two classes from a linear score: the class is 1 where score + logistic noise / slope is in its top part."""
    random = check_random_state(seed)
    X = random.normal(size=(n, d))
    score = X[:, :informative] @ random.normal(size=informative)
    noisy = score / score.std() + random.logistic(size=n) / slope
    return X, noisy > np.quantile(noisy, majority)


def linear(
    n: int, d: int, *, informative: int, decay: float = 1.0, noise: float, correlation: float = 0.0, seed: int = 42
) -> Table:
    """y = sum of decay^j x_j over the informative columns, plus a share `noise` of the variance that is pure noise.

    `correlation` is the share of every column's variance that one common factor explains.
    """
    random = check_random_state(seed)
    X = np.sqrt(1 - correlation) * random.normal(size=(n, d)) + np.sqrt(correlation) * random.normal(size=(n, 1))
    signs = 2 * random.randint(0, 2, size=informative) - 1 if correlation == 0 else np.ones(informative)
    signal = X[:, :informative] @ (signs * decay ** np.arange(informative))
    return X, _mixed(signal, noise, random)


def even(n: int, d: int, *, active: int, interaction: float, noise: float, seed: int = 42) -> Table:
    """An additive even function, cosines of uniform columns, plus products of pairs: no linear trend at all.

    `active` columns, an even number, stand in pairs; `interaction` is the weight of the products of a pair, `noise` the
    share of the variance that is pure noise.
    """
    random = check_random_state(seed)
    X = random.uniform(-np.pi, np.pi, size=(n, d))
    additive = np.cos(X[:, :active]).sum(axis=1)
    pairs = (np.sin(X[:, 0:active:2]) * np.sin(X[:, 1:active:2])).sum(axis=1)
    return X, _mixed(additive + interaction * pairs, noise, random)


FRIEDMAN: dict[int, Callable[..., Table]] = {
    2: datasets.make_friedman2,
    3: datasets.make_friedman3,
}


def friedman(n: int, d: int, *, number: int, noise: float, seed: int = 42) -> Table:
    """Friedman's three regression functions (1991); the first has 5 active columns of d, the others 4 of 4."""
    if number == 1:
        return datasets.make_friedman1(n_samples=n, n_features=d, noise=noise, random_state=seed)
    return FRIEDMAN[number](n_samples=n, noise=noise, random_state=seed)


def _with_noise_columns(X: Array, d: int, seed: int) -> Array:
    noise = check_random_state(seed + 1).normal(size=(len(X), d - X.shape[1]))
    return np.hstack([X, noise])


def _mixed(signal: Array, noise: float, random: np.random.RandomState) -> Array:
    """The signal at variance 1 - noise plus Gaussian noise of variance `noise`, times 100: a common unit for all."""
    signal = (signal - signal.mean()) / signal.std()
    return 100 * (np.sqrt(1 - noise) * signal + np.sqrt(noise) * random.normal(size=signal.size))
