"""Certificates are exact where they say so and never too large; attacks stay within their budget."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.datasets import make_classification
from sklearn.neighbors import KNeighborsClassifier
from sklearn.tree import DecisionTreeClassifier

from softlearning.uncertainty.disagreement import blend
from softlearning_bench.audit.robustness import (
    Tree,
    border_radius,
    certified_radius,
    fgsm,
    forest_radius,
    immune_weight,
    neighbour_radius,
    pgd,
    stable_rows,
    theorem_condition,
    tree_radius,
)

FLOAT32 = 2.0**-24


@pytest.fixture
def rng():
    return np.random.default_rng(0)


@pytest.fixture(scope="module")
def table():
    return make_classification(400, 5, random_state=0)


def arrays_of(model):
    t = model.tree_
    return Tree(t.children_left, t.children_right, t.feature, t.threshold)


def test_a_row_stays_in_its_leaf_within_the_radius_and_leaves_it_just_beyond(table, rng):
    X, y = table
    model = DecisionTreeClassifier(max_depth=6, random_state=0).fit(X, y)
    radius = tree_radius(arrays_of(model), X, rounding=FLOAT32)
    leaf = model.apply(X)
    for _ in range(50):
        inside = X + 0.999 * radius[:, None] * rng.uniform(-1, 1, X.shape)
        assert np.array_equal(model.apply(inside), leaf)
    steps = np.concatenate([np.eye(5), -np.eye(5)])
    leaves = [model.apply(X + (1.001 * radius + 1e-6)[:, None] * step) for step in steps]
    assert np.all(np.any(np.array(leaves) != leaf, axis=0))  # along some axis the edge is where it is said to be


def test_the_box_radius_is_the_same_in_l2_as_in_linf(table, rng):
    X, y = table
    model = DecisionTreeClassifier(max_depth=6, random_state=0).fit(X, y)
    radius = tree_radius(arrays_of(model), X, rounding=FLOAT32)
    direction = rng.normal(size=X.shape)
    direction /= np.linalg.norm(direction, axis=1, keepdims=True)
    assert np.array_equal(model.apply(X + 0.999 * radius[:, None] * direction), model.apply(X))


def test_a_tree_without_a_split_never_moves():
    stump = Tree(np.array([-1]), np.array([-1]), np.array([-2]), np.array([-2.0]))
    assert tree_radius(stump, np.zeros((3, 2))).tolist() == [np.inf] * 3


def test_missing_values_follow_their_branch_and_are_not_moved():
    tree = Tree(
        left=np.array([1, -1, 3, -1, -1]),
        right=np.array([2, -1, 4, -1, -1]),
        feature=np.array([0, -2, 1, -2, -2]),
        threshold=np.array([0.0, 0, 5.0, 0, 0]),
        missing_left=np.array([0, 0, 0, 0, 0]),
    )
    assert_allclose(tree_radius(tree, np.array([[np.nan, 2.0], [-1.0, 2.0], [0.5, 5.2]])), [3, 1, 0.2])


def test_units_turn_steps_of_a_scaled_view_into_raw_lengths():
    tree = Tree(np.array([1, -1, -1]), np.array([2, -1, -1]), np.array([0, -2, -2]), np.array([0.0, 0, 0]))
    assert_allclose(tree_radius(tree, np.array([[2.0]]), unit=np.array([10.0])), [20])


def test_a_forest_moves_when_its_first_tree_does(table):
    X, y = table
    trees = [arrays_of(DecisionTreeClassifier(max_depth=4, random_state=s, max_features=2).fit(X, y)) for s in range(5)]
    each = np.array([tree_radius(tree, X) for tree in trees])
    assert_allclose(forest_radius(trees, X), each.min(axis=0))


def test_borders_bound_every_tree_that_is_made_of_them(table):
    X, y = table
    tree = arrays_of(DecisionTreeClassifier(max_depth=6, random_state=0).fit(X, y))
    borders = [tree.threshold[(tree.feature == j) & (tree.left >= 0)] for j in range(5)]
    by_hand = np.min([np.abs(X[:, [j]] - b).min(axis=1) for j, b in enumerate(borders) if len(b)], axis=0)
    assert_allclose(border_radius(borders, X), by_hand)
    assert np.all(border_radius(borders, X) <= tree_radius(tree, X))


@pytest.mark.parametrize(("norm", "order"), [("l2", 2), ("linf", np.inf)])
def test_neighbours_stay_within_the_radius_and_change_just_beyond(table, rng, norm, order):
    X, y = table
    train, rows = X[:200], X[200:240]
    model = KNeighborsClassifier(5).fit(train, y[:200])
    neighbours = lambda rows: np.sort(model.kneighbors(rows, return_distance=False), axis=1)
    radius = neighbour_radius(train, rows, 5, norm=norm)
    for _ in range(30):
        step = rng.normal(size=rows.shape)
        step /= np.linalg.norm(step, ord=order, axis=1, keepdims=True)
        assert np.array_equal(neighbours(rows + 0.999 * radius[:, None] * step), neighbours(rows))
    worst = [cheapest_swap(train, x, norm) for x in rows]
    moved = neighbours(rows + 1.001 * radius[:, None] * np.array(worst))
    assert np.all(np.any(moved != neighbours(rows), axis=1))


def cheapest_swap(train, x, norm):
    """Unit step towards the plane that is reached first, found by looking at all pairs."""
    order = np.argsort(((train - x) ** 2).sum(axis=1))
    best, best_step = np.inf, None
    for i in order[:5]:
        for j in order[5:]:
            w = train[j] - train[i]
            margin = (((train[j] - x) ** 2).sum() - ((train[i] - x) ** 2).sum()) / 2
            length = np.linalg.norm(w) if norm == "l2" else np.abs(w).sum()
            if margin / length < best:
                best, best_step = margin / length, w / np.linalg.norm(w) if norm == "l2" else np.sign(w)
    return best_step


def test_a_twin_outside_the_neighbours_leaves_no_radius():
    train = np.array([[0.0], [1.0], [1.0], [9.0]])
    assert neighbour_radius(train, np.array([[0.4]]), 2).tolist() == [0.0]


def test_immune_weight_sums_the_flat_specialists():
    assert_allclose(immune_weight(np.array([0.2, 0.5, 0.3]), np.array([True, False, True])), 0.5)


def test_agreement_of_the_immune_majority_does_not_make_a_row_stable():
    P = np.array([[[0.4, 0.35, 0.25], [0.4, 0.35, 0.25], [0.34, 0.33, 0.33]]])
    alpha, immune = np.array([0.3, 0.3, 0.4]), np.array([True, True, False])
    assert theorem_condition(P, alpha, immune)[0]
    assert not stable_rows(P, alpha, immune)[0]
    P[0, 2] = [0, 1, 0]  # the mobile specialist moves, the others do not
    assert blend(P, alpha).argmax() == 1


def test_stable_rows_survive_whatever_the_others_say(rng):
    n, K, C = 300, 5, 3
    P, alpha = rng.dirichlet(np.full(C, 0.3), size=(n, K)), np.array([0.3, 0.3, 0.2, 0.1, 0.1])
    immune = np.array([True, True, True, False, False])
    stable = stable_rows(P, alpha, immune)
    before = blend(P, alpha).argmax(axis=1)
    assert 0 < stable.sum() < n
    for c in range(C):
        moved = P.copy()
        moved[:, ~immune] = np.eye(C)[c]
        assert np.array_equal(blend(moved, alpha).argmax(axis=1)[stable], before[stable])


def test_the_certified_radius_is_that_of_the_specialist_whose_move_could_tip_the_row():
    P = np.array([[[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]]])
    alpha = np.array([0.4, 0.4, 0.2])
    assert_allclose(certified_radius(P, alpha, np.array([[1.0, 2.0, 9.0]])), [1.0])
    assert_allclose(certified_radius(P[:, :2], np.array([0.7, 0.3]), np.array([[1.0, 2.0]])), [1.0])
    assert_allclose(certified_radius(P[:, :2], np.array([0.3, 0.7]), np.array([[1.0, 2.0]])), [2.0])
    assert certified_radius(P, alpha, np.zeros((1, 3)))[0] == 0


@pytest.mark.parametrize(("norm", "order"), [("linf", np.inf), ("l2", 2)])
def test_attacks_raise_the_loss_and_keep_their_budget(rng, norm, order):
    X, w = rng.normal(size=(30, 4)), np.array([1.0, -2.0, 0.5, 0.0])
    loss, slope = lambda X: np.tanh(X @ w), lambda X: w / np.cosh(X @ w)[:, None] ** 2
    moved = pgd(slope, X, 0.3, norm=norm)
    assert np.all(np.linalg.norm(moved - X, ord=order, axis=1) <= 0.3 + 1e-12)
    assert np.all(loss(moved) >= loss(X) - 1e-9)
    assert loss(moved).mean() > loss(X).mean() + 0.1
    if norm == "linf":
        assert np.all(np.abs(fgsm(slope, X, 0.3) - X) <= 0.3 + 1e-12)
        assert loss(moved).mean() >= loss(fgsm(slope, X, 0.3)).mean() - 1e-9


def test_a_flat_loss_gives_an_attack_nothing_to_follow(rng):
    X = rng.normal(size=(5, 2))
    assert_allclose(fgsm(np.zeros_like, X, 1.0), X)
    assert_allclose(pgd(np.zeros_like, X, 1.0, random_start=False), X)
