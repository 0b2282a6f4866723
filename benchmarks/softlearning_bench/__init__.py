"""Benchmarks of softlearning: real tables under a clock, and the paper's benchmark, run for real and audited.

The suite of real tables:
real          tables, splits, cells; one process per cell, under a clock; resumes
real_report   every pair of systems, losses listed as plainly as wins
adapters      the systems as their users call them; run by path, also in an environment of another system
external      asks them: files there and back, seconds, memory, an end when they hang

The paper's suite:
datasets      37 tables, nine real and twenty-eight reconstructed
generators    the functions behind the reconstructed ones
calibrate     search their free parameters; show the paper's columns against ours
paper         the numbers that the paper prints
shared        one outer fold, and the estimators fitted on it, which share a checkpoint
methods       what is compared, as rows
scoring       what a prediction is worth
results       one tidy csv: written line by line, read whole
run           list the cells, run each fold in a process of its own, skip what is there
significance  ranks and tests, from arrays
summary       the numbers that figures, claims and the page read
figures       the paper's figures, from the table
checks        single statements, checked on the paper's table and on ours
claims        the ledger: every checkable statement of the paper beside what was measured
report        one page of it all

Beside them: study, study_sets, study_report (the defaults), messy, overhead (costs), aims,
audit (attacks and theory).
The library is reached through its public names alone (tests/test_layers.py).
"""
