import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from softlearning.weights import problems, row_losses, solve_weights
from softlearning.weights.losses import checked, problem_of
from tests.weights.solver_problems import softmax


@pytest.fixture
def classes():
    rng = np.random.default_rng(7)
    Y = np.eye(3)[rng.integers(0, 3, 90)]
    P = softmax(rng.uniform(0.5, 3, (1, 6, 1)) * Y[:, None] + rng.normal(size=(90, 6, 3)))
    return P, Y


good_P, good_Y = np.full((4, 2, 2), 0.5), np.eye(2)[[0, 1, 0, 1]]


def test_blocks_of_rows_change_nothing(classes, monkeypatch):
    whole = solve_weights(*classes)
    monkeypatch.setattr(problems, "BLOCK", 20)
    assert_allclose(solve_weights(*classes).weights, whole.weights, atol=1e-12)
    assert_allclose(solve_weights(*classes).objective, whole.objective)


def test_soft_targets_enter_the_log_loss_by_their_probability(classes):
    P, Y = classes
    soft = 0.8 * Y + 0.1
    soft /= soft.sum(axis=1, keepdims=True)
    solution = solve_weights(P, soft, loss="log")
    assert_allclose(solution.objective, row_losses(P, soft, solution.weights, "log").mean())
    assert solution.gap <= 1e-12


@pytest.mark.parametrize(
    ("P", "Y", "options", "message"),
    [
        (good_P[0], good_Y, {}, "predictions must be"),
        (good_P[:, :0], good_Y, {}, "predictions must be"),
        (good_P, good_Y[:3], {}, r"target must have shape \(4, 2\)"),
        (good_P * np.nan, good_Y, {}, "predictions contains NaN"),
        (good_P, np.full((4, 2), np.inf), {}, "target contains NaN or inf"),
        (good_P * 1e301, good_Y, {}, "1e300"),
        (good_P, good_Y, {"rule": "magic"}, "unknown rule 'magic'"),
        (good_P, good_Y, {"rule": 3}, "name or a callable"),
        (good_P, good_Y, {"loss": "hinge"}, "unknown loss 'hinge'"),
        (good_P[:, :, :1], good_Y[:, :1], {"loss": "log"}, "column for each class"),
        (good_P * 3, good_Y, {"loss": "log"}, "between 0 and 1"),
        (good_P, good_Y * 2, {"loss": "log"}, "sum to 1"),
        (good_P, good_Y, {"sample_weight": [1, 2]}, "sample_weight must have shape"),
        (good_P, good_Y, {"sample_weight": [1, 2, -1, 0]}, "non-negative"),
        (good_P, good_Y, {"sample_weight": np.zeros(4)}, "zero in every row"),
    ],
)
def test_bad_input_is_refused_with_its_cause(P, Y, options, message):
    with pytest.raises(ValueError, match=message):
        solve_weights(P, Y, **options)


# ------------------------------------------------------------------------------------------------ order and duplicates


@pytest.mark.parametrize("loss", ["squared", "log", "absolute", "huber:1"])
def test_columns_come_in_an_order_that_depends_on_content_alone(loss, classes):
    P, Y = classes
    order = np.random.default_rng(0).permutation(6)
    first, second = (problem_of(*checked(p, Y, loss)) for p in (P, P[:, order]))
    assert_array_equal(second.matrix, first.matrix)
    assert_array_equal(second.group, first.group[order])


def test_duplicates_become_one_column_and_share_its_weight(classes):
    P, Y = classes
    found = problem_of(*checked(P[:, [0, 1, 0, 0]], Y, "squared"))
    assert found.matrix.shape[1] == 2
    assert sorted(found.count) == [1, 3]
    weights = np.array([0.2, 0.4, 0.2, 0.2])
    assert_allclose(found.spread(found.gathered(weights)), weights)


def test_a_row_of_weight_zero_is_as_good_as_absent(classes):
    P, Y = classes
    weight = np.ones(90)
    weight[60:] = 0
    whole, part = checked(P, Y, "squared", sample_weight=weight)[0], checked(P[:60], Y[:60], "squared")[0]
    assert_array_equal(whole.live, np.arange(60))
    assert_allclose(whole.share[:60], part.share)


@pytest.mark.parametrize("scale", [1e-140, 1.0, 1e140])
def test_values_come_back_in_the_unit_of_the_loss(scale):
    rng = np.random.default_rng(1)
    y = rng.normal(size=(20, 1))
    P = y[:, None] + rng.normal(size=(20, 3, 1))
    for loss, degree in (("squared", 2), ("absolute", 1)):
        plain, scaled = (solve_weights(P * s, y * s, loss=loss).objective for s in (1.0, scale))
        assert_allclose(scaled, plain * scale**degree)
