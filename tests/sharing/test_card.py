"""The card tells the truth."""

from dataclasses import replace

from softlearning import SoftClassifier, load
from softlearning.library import classifiers
from softlearning.sharing.card import model_card


def test_a_card_tells_what_was_learnt_and_for_whom_not(model, tmp_path):
    model.save(tmp_path / "flowers.model")
    card = model_card(load(tmp_path / "flowers.model"), tmp_path / "flowers.model")
    held = model.cv_score_
    told = [
        "# A model of `kind`",
        "110 rows",
        f"accuracy: {held['score']:.4g}",
        "flowers.model",
        "| `logistic` | `linear` |",
    ]
    for words in [*told, "`virginica` (10 rows)", "`petal length (cm)` 1 to", "scikit-learn 1."]:
        assert words in card
    assert "setosa` (" not in card


def test_names_in_a_card_are_shown_and_not_read_as_markdown(flowers):
    X, y = flowers
    odd = X.set_axis(["a|b", "c```d", "<b>e</b>", "```"], axis=1)
    row = replace(classifiers("paper")["naive_bayes"].specialists[0], name="one|two")
    card = model_card(SoftClassifier([row], cv=2, column_types={}).fit(odd, y.rename("# `kind`")))
    assert card.splitlines()[0] == "# A model of `` # `kind` ``"
    block = card.split("````text\n")[1].split("\n````\n")[0]
    assert [line.split()[0] for line in block.splitlines()] == ["a|b", "c```d", "<b>e</b>", "```"]
    assert r"| `one\|two` |" in card
    assert "`` ` ``" not in card
    assert "```` ``` ````" in card


def test_a_card_cannot_steer_the_terminal_that_shows_it(flowers):
    X, y = flowers
    card = model_card(SoftClassifier(["naive_bayes"], cv=2).fit(X, y.replace({"setosa": "\x1b]0;title\a"})))
    assert r"`\x1b]0;title\x07`" in card
    assert all(character.isprintable() or character == "\n" for character in card)
