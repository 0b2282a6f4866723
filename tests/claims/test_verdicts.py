"""Every statement of the paper's Table S10 has its file here, with a verdict and the condition it rests on.

| statement                               | file                          | verdict                 |
|-----------------------------------------|-------------------------------|-------------------------|
| Theorem 1, oracle inequality            | test_oracle_inequality        | holds under a condition |
| Corollary, library expansion is safe    | test_library_expansion        | holds under a condition |
| Corollary, selection is a special case  | test_selection_special_case   | fails as stated         |
| Theorem 2, cost                         | test_complexity               | fails as stated         |
| Lemma, ambiguity decomposition          | test_ambiguity                | holds                   |
| Theorem 3, diversity is positive        | test_positive_diversity       | holds under a condition |
| Corollary, lower bound on diversity     | test_diversity_bound          | fails as stated         |
| Theorem 5, sample efficiency            | test_sample_efficiency        | holds under a condition |
| Theorem 6, adversarial immunity         | test_adversarial_immunity     | fails as stated         |
| Theorem 7, uncertainty signals errors   | test_uncertainty              | fails as stated         |
| Corollary, selective accuracy           | test_selective_accuracy       | holds under a condition |
"""

import importlib

import pytest

ROWS = [[cell.strip() for cell in line.split("|")[1:-1]] for line in __doc__.splitlines() if "test_" in line]


@pytest.mark.parametrize(("statement", "file", "verdict"), ROWS, ids=[row[1] for row in ROWS])
def test_the_table_says_what_the_file_says(statement, file, verdict):
    module = importlib.import_module(f"tests.claims.{file}")
    assert verdict == module.VERDICT
    assert verdict in ("holds", "holds under a condition", "fails as stated")
    assert module.CONDITION
    assert f"Verdict: {verdict}" in module.__doc__


def test_table_s10_has_eleven_statements():
    assert len(ROWS) == 11
