"""The paper's benchmark, run for real and audited.

datasets      37 tables, nine real and twenty-eight reconstructed
generators    the functions behind the reconstructed ones
calibrate     search their free parameters; show the paper's columns against ours
paper         the numbers that the paper prints
shared        one outer fold, and the specialists fitted on it once for every method that reads them
methods       what is compared, as rows
external      foreign systems from an environment of their own; adapters is what runs over there
scoring       what a prediction is worth
results       one tidy csv: written a line at a time, read whole
run           list the cells, run each fold in a process of its own, skip what is there
significance  ranks and tests, from arrays
summary       the numbers that figures, claims and the page read
figures       the paper's figures, from the table
checks        single statements, checked on the paper's table and on ours
claims        the ledger: every checkable statement of the paper beside what was measured
report        one page of it all
"""
