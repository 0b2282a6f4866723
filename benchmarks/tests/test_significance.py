"""Ranks and tests, against the numbers that the paper prints and against worked examples."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats

from softlearning_bench.paper import paper_results
from softlearning_bench.significance import (
    breakdown,
    friedman,
    holm,
    nemenyi_distance,
    places,
    ranks,
    wilcoxon,
    win_matrix,
    win_tie_loss,
)


@pytest.fixture(scope="module")
def printed():
    return paper_results()


def test_equal_scores_share_the_average_of_their_ranks():
    assert_allclose(ranks([[0.9, 0.8, 0.9, 0.1]]), [[1.5, 3, 1.5, 4]])


def test_a_missing_score_is_refused_rather_than_ranked_last():
    with pytest.raises(ValueError, match="every method"):
        ranks([[0.9, np.nan]])


def test_the_papers_mean_ranks_follow_from_its_own_table(printed):
    expected = [3.11, 3.74, 4.64, 5.27, 5.22, 5.65, 6.77, 6.31, 6.35, 7.95]
    assert_allclose(friedman(printed).mean_ranks, expected, atol=0.006)


def test_the_papers_chi2_has_the_p_value_it_prints():
    assert_allclose(stats.chi2.sf(75.76, 9), 1.118e-12, rtol=1e-3)


def test_friedman_with_and_without_ties_brackets_the_papers_chi2(printed):
    outcome = friedman(printed)
    assert outcome.degrees == 9
    assert outcome.chi2 < 75.76 < outcome.ties_corrected


def test_friedman_with_ties_agrees_with_scipy(printed):
    reference = stats.friedmanchisquare(*printed.to_numpy().T)
    assert_allclose([friedman(printed).ties_corrected, friedman(printed).p], reference, rtol=1e-9)


def test_methods_that_never_differ_give_no_evidence():
    assert friedman(np.ones((5, 3))).p == 1


def test_nemenyi_distance_of_the_paper():
    assert_allclose(nemenyi_distance(10, 37), 2.227, atol=5e-4)


def test_nemenyi_distance_of_demsars_example():
    assert_allclose(nemenyi_distance(4, 14, alpha=0.10), 1.12, atol=0.005)


def test_wilcoxon_counts_only_datasets_that_differ(printed):
    outcome = wilcoxon(printed["Soft Learning"], printed["CatBoost"])
    assert outcome.used == 33
    assert_allclose(outcome.p_two_sided, 2 * outcome.p_greater)
    assert outcome.p_greater < 0.5 < outcome.p_less


def test_wilcoxon_sees_equal_steps_as_ties_whatever_their_binary_fraction():
    a, b = [0.947, 0.954, 0.3, 0.4], [0.946, 0.953, 0.302, 0.398]
    assert wilcoxon(a, b).statistic == 6.5  # ranks 1.5, 1.5, 3.5, 3.5, of which the third is a loss


def test_wilcoxon_of_a_method_against_itself_says_nothing():
    assert wilcoxon([0.1, 0.2], [0.1, 0.2]).p_greater == 1


def test_holm_multiplies_the_smallest_most_and_never_decreases():
    assert_allclose(holm([0.04, 0.01, 0.03]), [0.06, 0.03, 0.06])
    assert_allclose(holm([0.9, 0.8]), [1.0, 1.0])


def test_win_tie_loss_uses_the_stated_tolerance():
    record = win_tie_loss([0.5, 0.501, 0.52], [0.5, 0.5, 0.5], tolerance=0.001)
    assert (record.wins, record.ties, record.losses) == (1, 2, 0)


def test_the_papersrecord_against_catboost_follows_from_its_own_table(printed):
    record = win_tie_loss(printed["Soft Learning"], printed["CatBoost"])
    assert (record.wins, record.ties, record.losses) == (22, 4, 11)


def test_no_method_beats_itself_and_two_cannot_both_win_a_dataset(printed):
    wins = win_matrix(printed, tolerance=0.001)
    assert not wins.diagonal().any()
    assert (wins + wins.T).max() <= len(printed)


def test_soft_learning_is_first_or_tied_on_18_and_alone_first_on_12_of_the_papers_37(printed):
    first = places(printed)[0]
    assert (first.datasets, first.first, first.alone_first) == (37, 18, 12)


def test_a_tolerance_makes_more_shared_and_fewer_single_first_places(printed):
    exact, loose = places(printed)[0], places(printed, tolerance=0.005)[0]
    assert loose.first > exact.first
    assert loose.alone_first < exact.alone_first


def test_parts_of_a_breakdown_add_up_to_the_whole(printed):
    task = ["classification"] * 25 + ["regression"] * 12
    parts = breakdown(printed, {"task": task})["task"]
    assert [part[0].datasets for part in parts.values()] == [25, 12]
    assert sum(part[0].first for part in parts.values()) == places(printed)[0].first
